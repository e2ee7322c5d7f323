// One step after the other in doubles: the product with the state for all rows and gates, then the cell row by row.
#include "ops/recurrent_steps.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "ops/declare_impl.hpp"
#include "ops/gemm_f64.hpp"

namespace opfuse {
namespace {

/// A step's rows: sums of all gates, and what the cell makes of them.
class Steps {
 public:
  explicit Steps(const StepsInDoubles& s) : s_(s), rows_(s.batch * s.hidden), gates_(gates_of(s.cell.kind)) {
    const auto all = static_cast<size_t>(s.time * rows_);
    results_.h.resize(all);
    if (s.cell.kind != CellKind::rnn) results_.second.resize(all);
    if (s.cell.kind == CellKind::gru) results_.third.resize(all);
    sums_.resize(static_cast<size_t>(rows_ * gates_));
    start_.resize(static_cast<size_t>(rows_));
  }

  StepsInDoubles::Results run() {
    const double *h = s_.h0 ? s_.h0 : start_.data(), *c = s_.c0 ? s_.c0 : start_.data();
    for (int64_t step = 0; step < s_.time; ++step) {
      const int64_t t = s_.reverse ? s_.time - 1 - step : step;
      double *to = results_.h.data() + t * rows_, *second = nullptr;
      if (s_.cell.kind != CellKind::rnn) second = results_.second.data() + t * rows_;
      std::copy_n(s_.x + t * rows_ * gates_, rows_ * gates_, sums_.begin());
      if (s_.cell.kind == CellKind::gru)
        gru(h, to, second, results_.third.data() + t * rows_);
      else
        plain(h, c, to, second);
      keep_where_ended(t, h, to);
      if (s_.cell.kind == CellKind::lstm) keep_where_ended(t, c, second), c = second;
      h = to;
    }
    return std::move(results_);
  }

 private:
  const StepsInDoubles& s_;
  int64_t rows_, gates_;  ///< elements of a state
  std::vector<double> sums_, start_;
  StepsInDoubles::Results results_;

  /// sums of the gates [first, end) += h R^T
  void multiply(const double* h, int64_t first, int64_t end, double* sums, int64_t pitch) {
    const int64_t n = s_.hidden;
    gemm_f64(s_.batch, (end - first) * n, n, {h, n, 1}, {s_.r + first * n * n, 1, n}, sums, pitch);
  }

  void plain(const double* h, const double* c, double* to, double* next) {
    const int64_t n = s_.hidden, pitch = n * gates_;
    multiply(h, 0, gates_, sums_.data(), pitch);
    for (int64_t i = 0; i < rows_; ++i) {
      const double* sum = sums_.data() + i / n * pitch + i % n;
      if (s_.cell.kind == CellKind::rnn) {
        to[i] = activated(s_.cell, 0, *sum);
        continue;
      }
      const auto peephole = [&](int64_t which) { return s_.p ? s_.p[which * n + i % n] : 0.0; };
      const double peepholes[] = {peephole(0), peephole(1), peephole(2)};
      const LstmState<double> state =
          lstm_state<double>(s_.cell, {sum[0], sum[n], sum[2 * n], sum[3 * n]}, c[i], s_.p ? peepholes : nullptr);
      to[i] = state.h;
      next[i] = state.c;
    }
  }

  void gru(const double* h, double* to, double* reset, double* update) {
    const int64_t n = s_.hidden, pitch = n * gates_;
    multiply(h, 0, 2, sums_.data(), pitch);
    const auto gate = [&](int64_t i, int64_t g) {
      return activated(s_.cell, 0, sums_[static_cast<size_t>(i / n * pitch + g * n + i % n)]);
    };
    for (int64_t i = 0; i < rows_; ++i) reset[i] = gate(i, 1) * h[i], update[i] = gate(i, 0);
    std::vector<double> product(static_cast<size_t>(rows_));
    for (int64_t i = 0; s_.b && i < rows_; ++i) product[static_cast<size_t>(i)] = s_.b[i % n];
    multiply(s_.cell.linear_before_reset ? h : reset, 2, 3, product.data(), n);
    for (int64_t i = 0; i < rows_; ++i) {
      const double x = sums_[static_cast<size_t>(i / n * pitch + 2 * n + i % n)], p = product[static_cast<size_t>(i)];
      to[i] = gru_state(s_.cell, update[i], x + (s_.cell.linear_before_reset ? gate(i, 1) * p : p), h[i]);
    }
  }

  void keep_where_ended(int64_t t, const double* before, double* state) const {
    for (int64_t b = 0; !s_.alive.empty() && b < s_.batch; ++b)
      if (!s_.alive[static_cast<size_t>(t * s_.batch + b)])
        std::copy_n(before + b * s_.hidden, s_.hidden, state + b * s_.hidden);
  }
};

}  // namespace

StepsInDoubles::Results StepsInDoubles::run() const { return Steps(*this).run(); }

Cell RecurrentSteps::Attrs::as_cell() const {
  return {cell, cell_functions(cell, 1, activations, activation_alpha, activation_beta), clip, input_forget,
          linear_before_reset};
}

OpSpec RecurrentSteps::spec() {
  return {
      .name = "recurrent_steps",
      .inputs =
          {{"x"}, {"r"}, {"h0"}, optional_port("c0"), optional_port("b"), optional_port("p"), optional_port("alive")},
      .outputs = {{"h"}, optional_port("second"), optional_port("third")},
      .kind = OpKind::contraction,
      .doc = "The steps of one direction of a recurrent layer."};
}

std::vector<TensorType> RecurrentSteps::infer(const Attrs& attrs, const Inference& in) {
  require_float(in, kX);
  for (size_t i : {size_t{kR}, size_t{kH0}, size_t{kC0}, size_t{kB}, size_t{kP}}) require_same_dtype(in, kX, i);
  attrs.as_cell();
  if (has_unranked(in)) return unranked(in, in.dtype(kX));
  in.require_rank(kX, 3);
  in.require_rank(kR, 2);
  in.require_rank(kH0, 3);
  const Dim hidden = in.shape(kR)[1], gates = Dim(gates_of(attrs.cell)) * hidden;
  unify(in.shape(kR)[0], gates, "the rows of r");
  unify(in.shape(kX)[2], gates, "the last axis of x");
  for (size_t state : {size_t{kH0}, size_t{kC0}}) {
    if (!in.has(state)) continue;
    in.require_rank(state, 3);
    unify(in.shape(state)[0], Dim(1), "the first axis of a state");
    unify(in.shape(state)[1], in.shape(kX)[1], "the batch of a state");
    unify(in.shape(state)[2], hidden, "the last axis of a state");
  }
  if (in.has(kB)) require_vector(in, kB, hidden, "b");
  if (in.has(kP)) require_vector(in, kP, Dim(3) * hidden, "p");
  if (in.has(kAlive)) in.require_rank(kAlive, 2);
  const TensorType y{in.dtype(kX), Shape{in.shape(kX)[0], in.shape(kX)[1], hidden}};
  return std::vector<TensorType>(std::max<size_t>(in.outputs(), 1), y);
}

std::vector<Tensor> RecurrentSteps::reference(const Attrs& attrs, Tensors in, Precision) {
  std::vector<Reals> reals_of;
  reals_of.reserve(kAlive);
  const auto pointer = [&](size_t i) -> const double* {
    if (i >= in.size() || !in[i]) return nullptr;
    return reals_of.emplace_back(*in[i]).data();
  };
  const Tensor& x = *in[kX];
  StepsInDoubles steps{attrs.as_cell(), attrs.reverse, x.dim(0),     x.dim(1),    in[kR]->dim(1), pointer(kX),
                       pointer(kR),     pointer(kH0),  pointer(kC0), pointer(kB), pointer(kP)};
  if (in.size() > kAlive && in[kAlive])
    for (int64_t i = 0; i < in[kAlive]->elements(); ++i) steps.alive.push_back(in[kAlive]->integer(i) != 0);
  const StepsInDoubles::Results made = steps.run();
  const std::vector<int64_t> sizes = {steps.time, steps.batch, steps.hidden};
  std::vector<Tensor> results;
  const size_t count = attrs.cell == CellKind::lstm                                ? 2
                       : attrs.cell == CellKind::gru && !attrs.linear_before_reset ? 3
                                                                                   : 1;
  for (const std::vector<double>* values : {&made.h, &made.second, &made.third}) {
    if (results.size() == count) break;  // empty too, where time or batch is 0
    Tensor result(DType::f64, sizes);
    std::copy(values->begin(), values->end(), reals(result));
    results.push_back(rounded(std::move(result), x.dtype()));
  }
  return results;
}

Cost RecurrentSteps::cost(const Attrs&, std::span<const TensorType> in, std::span<const TensorType> out) {
  if (!out[0].shape.ranked || !in[kR].shape.ranked) return {};
  return {.flops = out[0].shape.elements() * in[kR].shape[0] * Dim(2), .weight_bytes = bytes_of(in[kR])};
}

const OpInfo* recurrent_steps_op() {
  static const OpInfo info = declare<RecurrentSteps>();
  return &info;
}

}  // namespace opfuse
