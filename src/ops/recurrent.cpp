// Inference and reference of recurrent layers: the product with the input for all steps, then the steps of each
// direction (ops/recurrent_steps.hpp), in doubles.
#include "ops/recurrent.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "ops/gemm_f64.hpp"
#include "ops/recurrent_steps.hpp"

namespace opfuse {
namespace {

std::vector<PortSpec> ports(CellKind kind) {
  std::vector<PortSpec> all = {
      {"x"}, {"w"}, {"r"}, optional_port("b"), optional_port("sequence_lens"), optional_port("initial_h")};
  if (kind == CellKind::lstm) all.push_back(optional_port("initial_c")), all.push_back(optional_port("p"));
  return all;
}

OpSpec spec_of(CellKind kind, std::string name, std::string doc) {
  OpSpec spec{.name = std::move(name),
              .inputs = ports(kind),
              .outputs = {optional_port("y"), optional_port("y_h")},
              .kind = OpKind::contraction};
  if (kind == CellKind::lstm) spec.outputs.push_back(optional_port("y_c"));
  spec.doc = std::move(doc);
  return spec;
}

void check_attrs(CellKind kind, const RecurrentAttrs& a) {
  if (a.direction != "forward" && a.direction != "reverse" && a.direction != "bidirectional")
    throw fail(E::bad_attribute, "direction is \"{}\"; forward, reverse and bidirectional exist", a.direction);
  if (a.layout != 0 && a.layout != 1) throw fail(E::bad_attribute, "layout is {}; 0 and 1 exist", a.layout);
  if (!(a.clip >= 0)) throw fail(E::bad_attribute, "clip is {}; it must not be negative", a.clip);
  a.cell(kind, 0);
}

/// One direction of a layer in doubles, time first.
class Layer {
 public:
  Layer(CellKind kind, const RecurrentAttrs& attrs, Tensors in)
      : kind_(kind), a_(attrs), in_(in), gates_(gates_of(kind) * in[kStateWeights]->dim(2)) {
    time_ = x().dim(attrs.batch_first() ? 1 : 0);
    batch_ = x().dim(attrs.batch_first() ? 0 : 1);
    hidden_ = in[kStateWeights]->dim(2);
  }

  std::vector<Tensor> run() {
    const int64_t d = a_.directions();
    const bool first = a_.batch_first();
    Tensor y(DType::f64, first ? std::vector{batch_, time_, d, hidden_} : std::vector{time_, d, batch_, hidden_});
    std::vector<Tensor> results = {y, state_tensor(), state_tensor()};
    for (int64_t i = 0; i < d; ++i) {
      const StepsInDoubles steps = steps_of(i);
      const StepsInDoubles::Results made = steps.run();
      store_sequence(i, made.h, results[0]);
      store_state(i, steps, made.h, h0_, results[1]);
      if (kind_ == CellKind::lstm) store_state(i, steps, made.second, c0_, results[2]);
    }
    if (kind_ != CellKind::lstm) results.pop_back();
    for (Tensor& t : results) t = rounded(std::move(t), x().dtype());
    return results;
  }

 private:
  CellKind kind_;
  const RecurrentAttrs& a_;
  Tensors in_;
  int64_t gates_, time_ = 0, batch_ = 0, hidden_ = 0;
  std::vector<double> gates_of_x_, bias_, peepholes_, weights_, h0_, c0_;  ///< of the direction

  const Tensor& x() const { return *in_[kSequence]; }
  const Tensor* operand(size_t i) const { return i < in_.size() ? in_[i] : nullptr; }
  Tensor state_tensor() const {
    const int64_t d = a_.directions();
    return Tensor(DType::f64, a_.batch_first() ? std::vector{batch_, d, hidden_} : std::vector{d, batch_, hidden_});
  }
  int64_t state_at(int64_t d, int64_t b) const {
    return (a_.batch_first() ? b * a_.directions() + d : d * batch_ + b) * hidden_;
  }

  /// Part `d` of an operand that has one for each direction.
  std::vector<double> part(size_t i, int64_t d) const {
    const Tensor* t = operand(i);
    if (!t) return {};
    const int64_t size = t->elements() / a_.directions();
    std::vector<double> values(static_cast<size_t>(size));
    for (int64_t k = 0; k < size; ++k) values[static_cast<size_t>(k)] = t->real(d * size + k);
    return values;
  }

  std::vector<double> state(size_t i, int64_t d) const {
    std::vector<double> values(static_cast<size_t>(batch_ * hidden_), 0.0);
    if (const Tensor* t = operand(i))
      for (int64_t b = 0; b < batch_; ++b)
        for (int64_t k = 0; k < hidden_; ++k)
          values[static_cast<size_t>(b * hidden_ + k)] = t->real(state_at(d, b) + k);
    return values;
  }

  bool ended(int64_t t, int64_t b) const { return operand(kLengths) && t >= in_[kLengths]->integer(b); }

  /// x W^T + b; a GRU whose reset comes behind its product adds that product's bias there.
  void multiply_input(int64_t d) {
    const Reals reals_of_x(x()), w(*in_[kInputWeights]);
    const int64_t size = x().dim(2);
    gates_of_x_.assign(static_cast<size_t>(time_ * batch_ * gates_), 0.0);
    const std::vector<double> b = part(kBias, d);
    const bool apart = kind_ == CellKind::gru && a_.linear_before_reset;
    for (int64_t t = 0; t < time_; ++t) {
      double* to = gates_of_x_.data() + t * batch_ * gates_;
      for (int64_t i = 0; !b.empty() && i < batch_ * gates_; ++i) {
        const int64_t g = i % gates_;
        to[i] = b[static_cast<size_t>(g)] + (apart && g >= 2 * hidden_ ? 0 : b[static_cast<size_t>(gates_ + g)]);
      }
      const double* rows = reals_of_x.data() + t * (a_.batch_first() ? size : batch_ * size);
      gemm_f64(batch_, gates_, size, {rows, a_.batch_first() ? time_ * size : size, 1},
               {w.data() + d * gates_ * size, 1, size}, to, gates_);
    }
    bias_.clear();
    if (apart && !b.empty()) bias_.assign(b.end() - hidden_, b.end());
  }

  StepsInDoubles steps_of(int64_t d) {
    multiply_input(d);
    weights_ = part(kStateWeights, d);
    peepholes_ = part(kPeepholes, d);
    h0_ = state(kH0, d);
    c0_ = state(kC0, d);
    StepsInDoubles steps{a_.cell(kind_, d),
                         a_.reverse(d),
                         time_,
                         batch_,
                         hidden_,
                         gates_of_x_.data(),
                         weights_.data(),
                         h0_.data(),
                         c0_.data(),
                         bias_.empty() ? nullptr : bias_.data(),
                         peepholes_.empty() ? nullptr : peepholes_.data()};
    for (int64_t i = 0; operand(kLengths) && i < time_ * batch_; ++i)
      steps.alive.push_back(!ended(i / batch_, i % batch_));
    return steps;
  }

  void store_sequence(int64_t d, const std::vector<double>& h, Tensor& y) const {
    const int64_t n = a_.directions();
    for (int64_t t = 0; t < time_; ++t)
      for (int64_t b = 0; b < batch_; ++b) {
        double* to = reals(y) + (a_.batch_first() ? (b * time_ + t) * n + d : (t * n + d) * batch_ + b) * hidden_;
        if (!ended(t, b)) std::copy_n(h.data() + (t * batch_ + b) * hidden_, hidden_, to);
      }
  }

  void store_state(int64_t d, const StepsInDoubles& steps, const std::vector<double>& states,
                   const std::vector<double>& start, Tensor& to) const {
    const int64_t last = steps.reverse ? 0 : time_ - 1;
    const double* from = time_ > 0 ? states.data() + last * batch_ * hidden_ : start.data();
    for (int64_t b = 0; b < batch_; ++b) std::copy_n(from + b * hidden_, hidden_, reals(to) + state_at(d, b));
  }
};

}  // namespace

Cell RecurrentAttrs::cell(CellKind kind, int64_t direction) const {
  const auto all =
      cell_functions(kind, static_cast<size_t>(directions()), activations, activation_alpha, activation_beta);
  const auto count = static_cast<std::ptrdiff_t>(functions_of(kind));
  const auto first = all.begin() + count * static_cast<std::ptrdiff_t>(direction);
  return {kind, {first, first + count}, clip, input_forget, linear_before_reset};
}

OpSpec Rnn::spec() { return spec_of(kKind, "rnn", "Simple recurrent layer."); }
OpSpec Gru::spec() { return spec_of(kKind, "gru", "Layer of gated recurrent units."); }
OpSpec Lstm::spec() { return spec_of(kKind, "lstm", "Layer of long short-term memory cells."); }

std::vector<TensorType> infer_recurrent(CellKind kind, const RecurrentAttrs& a, const Inference& in) {
  check_attrs(kind, a);
  require_float(in, kSequence);
  for (size_t i :
       {size_t{kInputWeights}, size_t{kStateWeights}, size_t{kBias}, size_t{kH0}, size_t{kC0}, size_t{kPeepholes}})
    require_same_dtype(in, kSequence, i);
  if (in.has(kLengths)) require_integer(in, kLengths);
  if (has_unranked(in)) return unranked(in, in.dtype(kSequence));
  for (size_t i : {size_t{kSequence}, size_t{kInputWeights}, size_t{kStateWeights}}) in.require_rank(i, 3);
  const Dim d = a.directions(), gates(gates_of(kind));
  const Shape &x = in.shape(kSequence), &w = in.shape(kInputWeights), &r = in.shape(kStateWeights);
  Dim hidden = r[2];
  if (a.hidden_size > 0) hidden = unify(hidden, Dim(a.hidden_size), "hidden_size");
  const auto need = [](const Dim& have, const Dim& want, const char* what) { unify(have, want, what); };
  need(w[0], d, "the directions of w");
  need(r[0], d, "the directions of r");
  need(w[1], gates * hidden, "the rows of w");
  need(r[1], gates * hidden, "the rows of r");
  need(w[2], x[2], "the columns of w");
  const Dim time = x[a.batch_first() ? 1 : 0];
  Dim batch = x[a.batch_first() ? 0 : 1];
  if (in.has(kBias)) {
    in.require_rank(kBias, 2);
    need(in.shape(kBias)[0], d, "the directions of b");
    need(in.shape(kBias)[1], Dim(2) * gates * hidden, "the columns of b");
  }
  if (in.has(kLengths)) require_vector(in, kLengths, batch, "sequence_lens");
  for (size_t i : {size_t{kH0}, size_t{kC0}}) {
    if (!in.has(i)) continue;
    in.require_rank(i, 3);
    need(in.shape(i)[a.batch_first() ? 1 : 0], d, "the directions of an initial state");
    batch = unify(batch, in.shape(i)[a.batch_first() ? 0 : 1], "the batch of an initial state");
    need(in.shape(i)[2], hidden, "the last axis of an initial state");
  }
  if (in.has(kPeepholes)) {
    in.require_rank(kPeepholes, 2);
    need(in.shape(kPeepholes)[0], d, "the directions of p");
    need(in.shape(kPeepholes)[1], Dim(3) * hidden, "the columns of p");
  }
  const DType dtype = in.dtype(kSequence);
  const Shape y = a.batch_first() ? Shape{batch, time, d, hidden} : Shape{time, d, batch, hidden};
  const Shape state = a.batch_first() ? Shape{batch, d, hidden} : Shape{d, batch, hidden};
  std::vector<TensorType> types = {{dtype, y}, {dtype, state}, {dtype, state}};
  types.resize(std::max<size_t>(in.outputs(), 1));
  return types;
}

std::vector<Tensor> run_recurrent(CellKind kind, const RecurrentAttrs& attrs, Tensors in) {
  return Layer(kind, attrs, in).run();
}

Cost recurrent_cost(std::span<const TensorType> in, std::span<const TensorType> out) {
  if (!in[kSequence].shape.ranked || !in[kInputWeights].shape.ranked || !in[kStateWeights].shape.ranked) return {};
  const Shape &x = in[kSequence].shape, &w = in[kInputWeights].shape, &r = in[kStateWeights].shape;
  const Dim products = w[0] * w[1] * (w[2] + r[2]);
  (void)out;
  return {.flops = x[0] * x[1] * products * Dim(2),
          .weight_bytes = bytes_of(in[kInputWeights]) + bytes_of(in[kStateWeights])};
}

}  // namespace opfuse
