// What ONNX Runtime's optimiser writes for operators it has fused (com.microsoft), taken apart again; our own fusion
// then decides anew.
//   Gelu, BiasGelu        gelu(x + bias), exact                  FastGelu   the form with tanh, of x + bias
//   QuickGelu             x * sigmoid(alpha * x)
//   FusedMatMul, FusedGemm, FusedConv                            an activation behind; FusedConv adds z before it
//   SkipLayerNormalization              layer_norm(x + skip + bias), also the sum
//   SkipSimplifiedLayerNormalization    x / sqrt(mean(x^2) + epsilon) * scale of such a sum
//   SimplifiedLayerNormalization        RMSNormalization by another name, in ONNX's own domain
//   EmbedLayerNormalization             layer_norm(words[ids] + positions[0, 1, ..] + segments[ids])
#include "base/fail.hpp"
#include "onnx/import_spelled.hpp"
#include "onnx/known_shape.hpp"
#include "ops/registry.hpp"

namespace opfuse::onnx {
namespace {

using Results = std::vector<Value*>;

constexpr double kQuick = 1.702;        // QuickGelu's alpha where the node has none
constexpr double kSkipEpsilon = 1e-12;  // SkipLayerNormalization's, and EmbedLayerNormalization's
constexpr size_t kSum = 3;              // the result that is the sum, behind mean and inverse deviation

Value* plus(Speller& s, Value* x, Value* y) { return y ? s.op("add", {x, y}) : x; }

Value* gelu(Speller& s, Value* x, const char* form) { return s.op("gelu", {x}, {{"form", std::string(form)}}); }

/// `name` of x with its parameters in the order in which ONNX Runtime lists them.
Value* activated(Speller& s, Value* x, const std::string& name, const std::vector<double>& given) {
  const auto parameter = [&](size_t i, double otherwise) { return i < given.size() ? given[i] : otherwise; };
  const auto number = [&](double v) { return s.number(v, x->type.dtype); };
  if (name.empty()) return x;
  if (name == "Relu") return s.op("relu", {x});
  if (name == "Tanh") return s.op("tanh", {x});
  if (name == "Sigmoid") return s.op("sigmoid", {x});
  if (name == "LeakyRelu") return s.op("leaky_relu", {x}, {{"alpha", parameter(0, 0.01)}});
  if (name == "HardSigmoid")
    return s.op("hard_sigmoid", {x}, {{"alpha", parameter(0, 0.2)}, {"beta", parameter(1, 0.5)}});
  if (name == "Clip" && given.size() == 2) return s.op("clip", {x, number(given[0]), number(given[1])});
  throw fail(E::unsupported_attribute, "activation \"{}\" of {} parameters is not supported", name, given.size());
}

/// Statistics are results of training; nobody reads them in inference.
void refuse_statistics(const NodeImport& n, size_t first, size_t count) {
  for (size_t i = first; i < first + count && i < n.proto.outputs.size(); ++i)
    if (!n.proto.outputs[i].empty())
      throw fail(E::unsupported_op, "result {} (\"{}\") is a statistic for training", i, n.proto.outputs[i]);
}

/// {y, -, -, sum}, as many as the node has.
Results with_sum(const NodeImport& n, Value* y, Value* sum) {
  Results results{y, nullptr, nullptr, sum};
  results.resize(std::max<size_t>(1, n.output_count()));
  return results;
}

/// x + skip + bias of the Skip operators, whose bias is operand `at`.
Value* sum_of(NodeImport& n, Speller& s, size_t at) {
  refuse_statistics(n, 1, kSum - 1);
  Value* x = plus(s, n.required(0), n.input(at));
  return s.op("add", {x, n.required(1)});
}

Value* swapped(Speller& s, Value* x) {
  const size_t rank = rank_of(x, "an operand");
  if (rank < 2) return x;
  std::vector<int64_t> order;
  for (size_t i = 0; i < rank; ++i) order.push_back(static_cast<int64_t>(i));
  std::swap(order[rank - 2], order[rank - 1]);
  return s.transpose(x, order);
}

/// [rows, batch .., columns] -> [batch .., rows, columns]
Value* behind_batch(Speller& s, Value* x) {
  const auto rank = static_cast<int64_t>(rank_of(x, "an operand"));
  if (rank < 3) return x;
  std::vector<int64_t> order;
  for (int64_t i = 1; i + 1 < rank; ++i) order.push_back(i);
  order.push_back(0);
  order.push_back(rank - 1);
  return s.transpose(x, order);
}

}  // namespace

Results import_contrib_gelu(NodeImport& n) {
  n.require_inputs(1, 1);
  Speller s(n);
  return {gelu(s, n.required(0), "exact")};
}

Results import_bias_gelu(NodeImport& n) {
  n.require_inputs(2, 2);
  Speller s(n);
  return {gelu(s, plus(s, n.required(0), n.required(1)), "exact")};
}

Results import_fast_gelu(NodeImport& n) {
  n.require_inputs(1, 2);
  Speller s(n);
  return {gelu(s, plus(s, n.required(0), n.input(1)), "tanh")};
}

Results import_quick_gelu(NodeImport& n) {
  n.require_inputs(1, 1);
  Speller s(n);
  Value* x = n.required(0);
  Value* turned = s.op("mul", {x, s.number(n.real("alpha", kQuick), x->type.dtype)});
  return {s.op("mul", {x, s.op("sigmoid", {turned})})};
}

Results import_fused_matmul(NodeImport& n) {
  n.require_inputs(2, 2);
  Speller s(n);
  Value* a = n.integer("transBatchA", 0) != 0 ? behind_batch(s, n.required(0)) : n.required(0);
  Value* b = n.integer("transBatchB", 0) != 0 ? behind_batch(s, n.required(1)) : n.required(1);
  if (n.integer("transA", 0) != 0) a = swapped(s, a);
  if (n.integer("transB", 0) != 0) b = swapped(s, b);
  Value* y = s.op("matmul", {a, b});
  const double alpha = n.real("alpha", 1);
  return {alpha == 1 ? y : s.op("mul", {y, s.number(alpha, y->type.dtype)})};
}

Results import_fused_gemm(NodeImport& n) {
  n.require_inputs(2, 3);
  Speller s(n);
  const AttrMap attrs = n.declared_attributes(*op_named("gemm"));
  std::vector<double> parameters;
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"})
    if (n.has(name)) parameters.push_back(n.real(name, 0));
  return {activated(s, s.op("gemm", n.inputs, attrs), n.text("activation", ""), parameters)};
}

Results import_fused_conv(NodeImport& n) {
  n.require_inputs(2, 4);
  Speller s(n);
  const AttrMap attrs = n.declared_attributes(*op_named("conv"));
  Value* y = s.op("conv", {n.required(0), n.required(1), n.input(2)}, attrs);
  return {activated(s, plus(s, y, n.input(3)), n.text("activation", ""),
                    n.reals("activation_params").value_or(std::vector<double>{}))};
}

Results import_skip_layer_norm(NodeImport& n) {
  n.require_inputs(3, 5);
  Speller s(n);
  Value* sum = sum_of(n, s, 4);
  std::vector<Value*> operands{sum, n.required(2)};
  if (n.input(3)) operands.push_back(n.input(3));
  return with_sum(n, s.op("layer_norm", operands, {{"epsilon", n.real("epsilon", kSkipEpsilon)}}), sum);
}

Results import_skip_rms_norm(NodeImport& n) {
  n.require_inputs(3, 4);
  Speller s(n);
  Value* sum = sum_of(n, s, 3);
  return with_sum(n, rms_norm(s, sum, n.required(2), -1, n.real("epsilon", kSkipEpsilon)), sum);
}

Results import_simplified_layer_norm(NodeImport& n) {
  refuse_statistics(n, 1, 1);
  return import_rms_normalization(n);
}

Results import_embed_layer_norm(NodeImport& n) {
  n.require_inputs(7, 9);
  Speller s(n);
  Value* const ids = n.required(0);
  if (rank_of(ids, "input_ids") != 2) throw fail(E::rank_mismatch, "input_ids is {}", ids->type.text());
  const auto rows = [&](Value* table, Value* at) { return s.op("gather", {table, at}, {{"axis", int64_t{0}}}); };
  Value* positions = n.input(8) ? n.input(8) : s.unsqueeze(positions_along(s, ids, 1), 0);
  Value* sum = s.op("add", {rows(n.required(2), ids), rows(n.required(3), positions)});
  if (Value* segments = n.input(1)) sum = s.op("add", {sum, rows(n.required(4), segments)});
  Value* y = s.op("layer_norm", {sum, n.required(5), n.required(6)}, {{"epsilon", n.real("epsilon", kSkipEpsilon)}});
  n.ignore("mask_index_type");  // of a result that is counted below
  Results results{y, nullptr, sum};
  if (n.proto.outputs.size() > 1 && !n.proto.outputs[1].empty()) {
    Value* seen = n.input(7) ? n.input(7) : s.op("sub", {ids, ids});  // 0 of each sample without a mask
    seen = s.op("reduce_sum", {s.cast(seen, DType::i64), s.integers({1})}, {{"keepdims", false}});
    results[1] = s.cast(seen, DType::i32);
  }
  results.resize(std::max<size_t>(1, n.output_count()));
  return results;
}

}  // namespace opfuse::onnx
