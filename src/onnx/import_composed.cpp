// Losses and normalisations that ONNX defines by other operators.
//   LpNormalization              x / sum(|x|^p)^(1/p) along an axis, 0 where the norm is 0           p = 1, 2
//   MeanVarianceNormalization    (x - mean) / (deviation + 1e-9)
//   BatchNormalization, training (x - mean) / sqrt(var + epsilon) * scale + bias with the statistics of x itself
//   NegativeLogLikelihoodLoss    -w[t] x[n, t, ..], summed or weighted by w;   SoftmaxCrossEntropyLoss: of log_softmax
#include "base/fail.hpp"
#include "onnx/import_spelled.hpp"
#include "ops/axes.hpp"

namespace opfuse::onnx {
namespace {

using Results = std::vector<Value*>;

const Shape& ranked_shape(const Value* x, const char* what) {
  if (!x->type.shape.ranked) throw fail(E::unsupported_op, "the rank of {} is not known", what);
  return x->type.shape;
}

std::vector<int64_t> all_axes_but(size_t rank, int64_t kept) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < static_cast<int64_t>(rank); ++i)
    if (i != kept) axes.push_back(i);
  return axes;
}

Value* mean_of(Speller& s, Value* x, const std::vector<int64_t>& axes, bool keep) {
  return s.op("reduce_mean", {x, s.integers(axes)}, {{"keepdims", keep}});
}

Value* all_of(Speller& s, Value* x, const char* reduction) { return s.op(reduction, {x}, {{"keepdims", false}}); }

/// [C] beside [N, C, ..]
Value* per_channel(Speller& s, Value* v, size_t rank) {
  std::vector<int64_t> axes;
  for (size_t i = 2; i < rank; ++i) axes.push_back(static_cast<int64_t>(i) - 1);
  return axes.empty() ? v : s.op("unsqueeze", {v, s.integers(axes)});
}

struct Loss {
  NodeImport& n;
  Speller s;
  std::string reduction;
  std::optional<int64_t> ignored;
  Value *target, *weight;

  explicit Loss(NodeImport& node) : n(node), s(node), reduction(node.text("reduction", "mean")) {
    n.require_inputs(2, 3);
    if (reduction != "mean" && reduction != "sum" && reduction != "none")
      throw fail(E::bad_attribute, "reduction is \"{}\"", reduction);
    if (n.has("ignore_index")) ignored = n.integer("ignore_index", 0);
    target = s.cast(n.required(1), DType::i64);
    weight = n.input(2);
  }

  Value* of(Value* x) {
    const size_t rank = ranked_shape(x, "the operand").rank();
    if (rank < 2) throw fail(E::rank_mismatch, "the operand is {}; a batch of classes is expected", x->type.text());
    const DType dtype = x->type.dtype;
    Value *at = target, *skipped = nullptr;
    if (ignored) {
      skipped = s.op("equal", {target, s.number(static_cast<double>(*ignored), DType::i64)});
      at = s.op("where", {skipped, s.number(0, DType::i64), target});
    }
    Value* picked = s.op("gather_elements", {x, s.unsqueeze(at, 1)}, {{"axis", int64_t{1}}});
    Value* loss = s.op("neg", {s.op("squeeze", {picked, s.integers({1})})});
    Value* w = weight ? s.op("gather", {weight, at}, {{"axis", int64_t{0}}}) : nullptr;
    if (skipped) {
      w = s.op("where", {skipped, s.number(0, dtype), w ? w : s.number(1, dtype)});
      loss = s.op("where", {skipped, s.number(0, dtype), loss});  // an ignored infinity is not a NaN
    }
    if (w) loss = s.op("mul", {loss, w});
    if (reduction == "none") return loss;
    if (reduction == "sum") return all_of(s, loss, "reduce_sum");
    if (!w) return all_of(s, loss, "reduce_mean");
    return s.op("div", {all_of(s, loss, "reduce_sum"), all_of(s, w, "reduce_sum")});
  }
};

}  // namespace

Results import_lp_normalization(NodeImport& n) {
  n.require_inputs(1, 1);
  const int64_t p = n.integer("p", 2), axis = n.integer("axis", -1);
  if (p != 1 && p != 2) throw fail(E::unsupported_attribute, "p = {}; 1 and 2 are supported", p);
  Speller s(n);
  Value* x = n.required(0);
  Value* norm = s.op(p == 1 ? "reduce_l1" : "reduce_l2", {x, s.integers({axis})}, {{"keepdims", true}});
  Value* zero = s.number(0, x->type.dtype);
  return {s.op("where", {s.op("equal", {norm, zero}), zero, s.op("div", {x, norm})})};
}

Results import_mean_variance_normalization(NodeImport& n) {
  n.require_inputs(1, 1);
  const std::vector<int64_t> axes = n.integers("axes").value_or(std::vector<int64_t>{0, 2, 3});
  Speller s(n);
  Value* x = n.required(0);
  Value* centred = s.op("sub", {x, mean_of(s, x, axes, true)});
  Value* deviation = s.op("sqrt", {mean_of(s, s.op("mul", {centred, centred}), axes, true)});
  return {s.op("div", {centred, s.op("add", {deviation, s.number(1e-9, x->type.dtype)})})};
}

Results import_training_batch_norm(NodeImport& n) {
  const double epsilon = n.real("epsilon", 1e-5), momentum = n.real("momentum", 0.9);
  Speller s(n);
  Value* x = n.required(0);
  const size_t rank = ranked_shape(x, "x").rank();
  if (rank < 2) throw fail(E::rank_mismatch, "x is {}; channels are its second dimension", x->type.text());
  const std::vector<int64_t> axes = all_axes_but(rank, 1);
  Value* centred = s.op("sub", {x, mean_of(s, x, axes, true)});
  Value* square = s.op("mul", {centred, centred});
  Value* deviation = s.op("sqrt", {s.op("add", {mean_of(s, square, axes, true), s.number(epsilon, x->type.dtype)})});
  Value* scaled = s.op("mul", {s.op("div", {centred, deviation}), per_channel(s, n.required(1), rank)});
  Results results{s.op("add", {scaled, per_channel(s, n.required(2), rank)})};
  const auto running = [&](Value* before, Value* now) {
    const DType dtype = before->type.dtype;
    return s.op("add", {s.op("mul", {before, s.number(momentum, dtype)}),
                        s.op("mul", {s.cast(now, dtype), s.number(1 - momentum, dtype)})});
  };
  if (n.output_count() > 1) results.push_back(running(n.required(3), mean_of(s, x, axes, false)));
  if (n.output_count() > 2) results.push_back(running(n.required(4), mean_of(s, square, axes, false)));
  if (n.output_count() > 3)
    throw fail(E::unsupported_attribute, "results of the training form before opset 14 are not supported");
  return results;
}

Results import_nll_loss(NodeImport& n) { return {Loss(n).of(n.required(0))}; }

Results import_softmax_cross_entropy(NodeImport& n) {
  Loss loss(n);
  Value* log_probability = loss.s.op("log_softmax", {n.required(0)}, {{"axis", int64_t{1}}});
  Results results{loss.of(log_probability)};
  if (n.output_count() > 1) results.push_back(log_probability);
  return results;
}

}  // namespace opfuse::onnx
