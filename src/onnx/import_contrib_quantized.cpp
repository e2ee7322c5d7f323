// Operators on quantised tensors of ONNX Runtime's own domain (com.microsoft), as its quantiser writes them: each is
// quantize(op(dequantize(x), ..)), the form that Q/DQ models have.
//   QLinearAdd, QLinearMul, QLinearSigmoid, QLinearLeakyRelu, QLinearSoftmax, QLinearConcat, QLinearWhere
//   QLinearAveragePool, QLinearGlobalAveragePool, QLinearReduceMean, QLinearConv
//   QuantizeLinear, DequantizeLinear
//   QGemm                                              quantised where it has a scale of the result, else real
//   MatMulIntegerToFloat, DynamicQuantizeMatMul        products of codes as real numbers
#include "base/fail.hpp"
#include "onnx/import_spelled.hpp"
#include "ops/registry.hpp"

namespace opfuse::onnx {
namespace {

using Results = std::vector<Value*>;

constexpr size_t kTensor = 3;  // operands that tell of a tensor: codes, scale, zero point

Value* dequantized(Speller& s, Value* codes, Value* scale, Value* zero, int64_t axis = 1) {
  return s.op("dequantize_linear", {codes, scale, zero}, {{"axis", axis}});
}

/// The real numbers of the tensor whose codes, scale and zero point start at operand `first`.
Value* real(NodeImport& n, Speller& s, size_t first, int64_t axis = 1) {
  return dequantized(s, n.required(first), n.required(first + 1), n.input(first + 2), axis);
}

/// `y` in the scale and zero point that start at operand `first`.
Results quantized(NodeImport& n, Speller& s, Value* y, size_t first) {
  return {s.op("quantize_linear", {y, n.required(first), n.input(first + 1)}, {{"axis", int64_t{1}}})};
}

/// Runs `body` with the channels of the first operand behind the batch, where the node has them last. Other operands,
/// the filters of a convolution too, lie the same way in both forms.
template <class Body>
Results channels_first(NodeImport& n, Body&& body) {
  if (n.integer("channels_last", 0) == 0) return body();
  const Shape& shape = n.required(0)->type.shape;
  if (!shape.ranked || shape.rank() < 3)
    throw fail(E::unsupported_op, "the data is {}; channels_last needs its dimensions", shape.text());
  const auto rank = static_cast<int64_t>(shape.rank());
  std::vector<int64_t> in{0, rank - 1}, out{0};
  for (int64_t axis = 1; axis + 1 < rank; ++axis) in.push_back(axis), out.push_back(axis + 1);
  out.push_back(1);
  Speller s(n);
  n.inputs[0] = s.transpose(n.inputs[0], in);
  return {s.transpose(body()[0], out)};
}

Results binary(NodeImport& n, const char* op) {
  n.require_inputs(7, 8);
  Speller s(n);
  Value* a = real(n, s, 0);
  return quantized(n, s, s.op(op, {a, real(n, s, kTensor)}), 2 * kTensor);
}

Results unary(NodeImport& n, const char* op, const AttrMap& attrs = {}) {
  n.require_inputs(4, 5);
  Speller s(n);
  return quantized(n, s, s.op(op, {real(n, s, 0)}, attrs), kTensor);
}

/// Softmax of opset 12 and before flattens what follows the axis.
Results softmax(NodeImport& n) {
  const int64_t opset = n.integer("opset", n.opset);
  AttrMap attrs{{"axis", n.integer("axis", opset < 13 ? 1 : -1)}};
  if (opset < 13) attrs.emplace_back("flatten", true);
  return unary(n, "softmax", attrs);
}

int64_t last_axis(const Value* x) {
  if (!x->type.shape.ranked) throw fail(E::unsupported_op, "the rank of an operand is not known");
  return static_cast<int64_t>(x->type.shape.rank()) - 1;
}

}  // namespace

Results import_contrib_quantize(NodeImport& n) {
  return n.emit("quantize_linear", n.declared_attributes(*op_named("quantize_linear")), n.inputs);
}

Results import_contrib_dequantize(NodeImport& n) {
  return n.emit("dequantize_linear", n.declared_attributes(*op_named("dequantize_linear")), n.inputs);
}

Results import_qlinear_add(NodeImport& n) { return binary(n, "add"); }
Results import_qlinear_mul(NodeImport& n) { return binary(n, "mul"); }
Results import_qlinear_sigmoid(NodeImport& n) { return unary(n, "sigmoid"); }
Results import_qlinear_softmax(NodeImport& n) { return softmax(n); }

Results import_qlinear_leaky_relu(NodeImport& n) { return unary(n, "leaky_relu", {{"alpha", n.real("alpha", 0.01)}}); }

Results import_qlinear_average_pool(NodeImport& n) {
  return channels_first(n, [&] { return unary(n, "average_pool", n.declared_attributes(*op_named("average_pool"))); });
}

Results import_qlinear_global_average_pool(NodeImport& n) {
  return channels_first(n, [&] { return unary(n, "global_average_pool"); });
}

Results import_qlinear_reduce_mean(NodeImport& n) {
  n.require_inputs(4, 5);
  Speller s(n);
  std::vector<Value*> operands{real(n, s, 0)};
  if (const auto axes = n.integers("axes")) operands.push_back(s.integers(*axes));
  Value* mean = s.op("reduce_mean", operands, {{"keepdims", n.integer("keepdims", 1) != 0}});
  return quantized(n, s, mean, kTensor);
}

Results import_qlinear_concat(NodeImport& n) {
  if (n.inputs.size() < 2 + kTensor || (n.inputs.size() - 2) % kTensor != 0)
    throw fail(E::arity_mismatch, "{} operands; two and three for each part are expected", n.inputs.size());
  Speller s(n);
  std::vector<Value*> parts;
  for (size_t i = 2; i < n.inputs.size(); i += kTensor) parts.push_back(real(n, s, i));
  return quantized(n, s, s.concat(parts, n.integer("axis", 0)), 0);
}

Results import_qlinear_where(NodeImport& n) {
  n.require_inputs(9, 9);
  Speller s(n);
  Value* x = real(n, s, 1);
  return quantized(n, s, s.op("where", {n.required(0), x, real(n, s, 1 + kTensor)}), 1 + 2 * kTensor);
}

Results import_contrib_qlinear_conv(NodeImport& n) {
  return channels_first(n, [&] { return import_qlinear_conv(n); });
}

Results import_qgemm(NodeImport& n) {
  n.require_inputs(6, 9);
  Speller s(n);
  const bool across = n.integer("transB", 0) != 0;
  Value* a = real(n, s, 0);
  Value* b = real(n, s, kTensor, across ? 0 : 1);
  std::vector<Value*> operands{a, b};
  const double alpha = n.real("alpha", 1);
  if (Value* bias = n.input(6)) {  // codes of the scale of the sum, which alpha multiplies too
    Value* scale = s.op("mul", {n.required(1), n.required(4)});
    if (alpha != 1) scale = s.op("mul", {scale, s.number(alpha, DType::f32)});
    operands.push_back(s.op("mul", {s.cast(bias, DType::f32), scale}));
  }
  const AttrMap attrs{{"alpha", alpha}, {"transA", n.integer("transA", 0) != 0}, {"transB", across}};
  Value* y = s.op("gemm", operands, attrs);
  return n.input(7) ? quantized(n, s, y, 7) : Results{y};
}

/// Of constant codes the sums are those of integers.
Value* real_product(NodeImport& n, Speller& s, const DynamicCodes& a, const DynamicCodes& b, Value* bias) {
  Value* y = nullptr;
  if (b.codes->is_constant()) {
    Value* sums = product_of_codes(s, n, a.codes, b.codes, a.zero, b.zero);
    y = s.op("mul", {s.cast(sums, DType::f32), s.op("mul", {a.scale, b.scale})});
  } else {
    Value* left = dequantized(s, a.codes, a.scale, a.zero, last_axis(a.codes) - 1);
    y = s.op("matmul", {left, dequantized(s, b.codes, b.scale, b.zero, last_axis(b.codes))});
  }
  return bias ? s.op("add", {y, bias}) : y;
}

Results import_matmul_integer_to_float(NodeImport& n) {
  n.require_inputs(4, 7);
  Speller s(n);
  return {real_product(n, s, {n.required(0), n.required(2), n.input(4)}, {n.required(1), n.required(3), n.input(5)},
                       n.input(6))};
}

Results import_dynamic_quantize_matmul(NodeImport& n) {
  n.require_inputs(3, 5);
  Speller s(n);
  const DynamicCodes a = dynamic_codes(s, n.required(0));
  return {real_product(n, s, a, {n.required(1), n.required(2), n.input(3)}, n.input(4))};
}

}  // namespace opfuse::onnx
