// Operators of com.microsoft that are ONNX's own in another form, and what its optimiser writes for diffusion models.
//   ExpandDims, Pad, Trilu, GatherND       Unsqueeze with a scalar axis, opset 11's Pad; the others as in ONNX
//   CDist                                  |a_i - b_j|, or its square
//   NhwcMaxPool                            MaxPool of codes whose channels are last
//   BiasSoftmax                            softmax(x + bias) over all axes from `axis` on
//   BiasAdd, BiasSplitGelu                 x + bias + skip; of x + bias the first half times gelu of the second
//   GroupNorm, SkipGroupNorm               channels last, with SiLU behind where activation is 1; of x + skip + bias
#include <numeric>

#include "base/fail.hpp"
#include "onnx/import_spelled.hpp"
#include "onnx/known_shape.hpp"
#include "ops/registry.hpp"

namespace opfuse::onnx {
namespace {

using Results = std::vector<Value*>;

Value* plus(Speller& s, Value* x, Value* y) { return y ? s.op("add", {x, y}) : x; }

/// Where the channels go, and back.
struct Turns {
  std::vector<int64_t> in{0}, out{0};
  explicit Turns(int64_t rank) {
    in.push_back(rank - 1);
    for (int64_t axis = 1; axis + 1 < rank; ++axis) in.push_back(axis), out.push_back(axis + 1);
    out.push_back(1);
  }
};

Turns turns_of(const Value* x) {
  const size_t rank = rank_of(x, "x");
  if (rank < 3) throw fail(E::rank_mismatch, "x is {}; images with their channels last are expected", x->type.text());
  return Turns(static_cast<int64_t>(rank));
}

/// group_norm of `x`, then SiLU where the node asks for it.
Value* normed(NodeImport& n, Speller& s, Value* x, Value* scale, Value* bias) {
  const bool last = n.integer("channels_last", 1) != 0;
  const int64_t activation = n.integer("activation", 0);
  if (activation != 0 && activation != 1) throw fail(E::bad_attribute, "activation is {}", activation);
  const AttrMap attrs{{"num_groups", n.integer("groups", 0)}, {"epsilon", n.real("epsilon", 1e-5)}};
  const DType dtype = x->type.dtype;
  const auto y = [&](Value* v) { return s.op("group_norm", {v, s.cast(scale, dtype), s.cast(bias, dtype)}, attrs); };
  const Turns turns = turns_of(x);
  Value* z = last ? s.transpose(y(s.transpose(x, turns.in)), turns.out) : y(x);
  return activation == 1 ? s.op("silu", {z}) : z;
}

}  // namespace

Results import_expand_dims(NodeImport& n) {
  n.require_inputs(2, 2);
  Speller s(n);
  return {s.op("unsqueeze", {n.required(0), s.reshape(s.cast(n.required(1), DType::i64), {1})})};
}

Results import_contrib_trilu(NodeImport& n) {
  n.require_inputs(1, 2);
  return n.emit("trilu", n.declared_attributes(*op_named("trilu")), n.inputs);
}

Results import_contrib_gather_nd(NodeImport& n) {
  n.require_inputs(2, 2);
  Speller s(n);
  return {s.op("gather_nd", {n.required(0), s.cast(n.required(1), DType::i64)})};
}

Results import_contrib_pad(NodeImport& n) {
  n.require_inputs(2, 3);
  Speller s(n);
  n.inputs[1] = s.reshape(n.required(1), {-1});
  return n.emit("pad", n.declared_attributes(*op_named("pad")), n.inputs);
}

Results import_cdist(NodeImport& n) {
  n.require_inputs(2, 2);
  const std::string metric = n.text("metric", "sqeuclidean");
  if (metric != "euclidean" && metric != "sqeuclidean") throw fail(E::bad_attribute, "metric is \"{}\"", metric);
  Speller s(n);
  Value* apart = s.op("sub", {s.unsqueeze(n.required(0), 1), s.unsqueeze(n.required(1), 0)});
  const char* norm = metric == "euclidean" ? "reduce_l2" : "reduce_sum_square";
  return {s.op(norm, {apart, s.integers({-1})}, {{"keepdims", false}})};
}

Results import_nhwc_max_pool(NodeImport& n) {
  n.require_inputs(1, 1);
  Speller s(n);
  const Turns turns = turns_of(n.required(0));
  const AttrMap attrs = n.declared_attributes(*op_named("max_pool"));
  return {s.transpose(s.op("max_pool", {s.transpose(n.required(0), turns.in)}, attrs), turns.out)};
}

Results import_bias_softmax(NodeImport& n) {
  n.require_inputs(2, 2);
  n.ignore("is_inner_broadcast");  // sizes of 1 say the same
  Speller s(n);
  Value* sum = s.op("add", {n.required(0), n.required(1)});
  return {s.op("softmax", {sum}, {{"axis", n.integer("axis", 1)}, {"flatten", true}})};
}

Results import_bias_add(NodeImport& n) {
  n.require_inputs(3, 3);
  Speller s(n);
  return {plus(s, plus(s, n.required(0), n.required(1)), n.required(2))};
}

Results import_bias_split_gelu(NodeImport& n) {
  n.require_inputs(2, 2);
  Speller s(n);
  Value* x = plus(s, n.required(0), n.required(1));
  const auto axis = static_cast<int64_t>(rank_of(x, "x")) - 1;
  const int64_t width = known_size(x, static_cast<size_t>(axis)), half = width / 2;
  if (width % 2 != 0) throw fail(E::shape_mismatch, "{} columns do not split in two", width);
  return {s.op("mul", {s.slice(x, axis, 0, half), s.op("gelu", {s.slice(x, axis, half, width)})})};
}

Results import_contrib_group_norm(NodeImport& n) {
  n.require_inputs(3, 3);
  Speller s(n);
  return {normed(n, s, n.required(0), n.required(1), n.required(2))};
}

Results import_skip_group_norm(NodeImport& n) {
  n.require_inputs(4, 5);
  Speller s(n);
  Value *x = n.required(0), *skip = n.required(3);
  const size_t rank = rank_of(x, "x"), given = rank_of(skip, "skip");
  std::vector<int64_t> pixels;  // of a skip for each image
  for (size_t axis = 1; axis + 1 < rank; ++axis) pixels.push_back(static_cast<int64_t>(axis));
  if (given == 2 && rank > 2) skip = s.op("unsqueeze", {skip, s.integers(pixels)});
  Value* sum = plus(s, plus(s, x, skip), n.input(4));
  Results results{normed(n, s, sum, n.required(1), n.required(2)), s.op("identity", {sum})};
  results.resize(std::max<size_t>(1, n.output_count()));
  return results;
}

}  // namespace opfuse::onnx
