// Operators on quantised tensors.
//   QLinearConv, QLinearMatMul   quantize(conv(dequantize(x), dequantize(w)) + bias): the form that Q/DQ models have
//   MatMulInteger, ConvInteger   sums of products of (x - zero) (w - zero) in i32, exactly (product_of_codes.cpp)
//   DynamicQuantizeLinear        scale = (max - min) / 255 over x and 0, zero point = round(-min / scale)
//
// Convolutions have kernels of floats only. A sum of integers is exact in f32 as long as it stays below 2^24, which
// constant weights prove: |x - zero| <= 255, so 255 * sum |w - zero| of each filter bounds it. Otherwise f64 holds it.
#include <algorithm>
#include <cmath>

#include "base/fail.hpp"
#include "onnx/import_spelled.hpp"
#include "onnx/known_shape.hpp"
#include "ops/registry.hpp"

namespace opfuse::onnx {
namespace {

using Results = std::vector<Value*>;

Value* dequantized(Speller& s, Value* x, Value* scale, Value* zero, int64_t axis) {
  return s.op("dequantize_linear", {x, scale, zero}, {{"axis", axis}});
}

/// x - zero as `dtype`; a vector of zero points belongs to `axis` of x, counted from the end.
Value* centred(Speller& s, Value* x, Value* zero, DType dtype, int64_t axis_from_end) {
  Value* value = s.cast(x, dtype);
  if (!zero) return value;
  Value* point = s.cast(zero, dtype);
  const Shape& shape = zero->type.shape;
  const bool many = shape.ranked && shape.rank() == 1 && !(shape[0] == Dim(1));
  if (many && axis_from_end > 1) {
    std::vector<int64_t> axes;
    for (int64_t i = 1; i < axis_from_end; ++i) axes.push_back(i);
    point = s.op("unsqueeze", {point, s.integers(axes)});
  }
  return s.op("sub", {value, point});
}

AttrMap window_attributes(NodeImport& n) { return n.declared_attributes(*op_named("conv")); }

/// The greatest sum of |w - zero| over a filter; infinite when it is not known here.
double greatest_filter(const Value* w, const Value* zero) {
  if (!w->is_constant() || (zero && !zero->is_constant()) || w->constant->rank() == 0) return HUGE_VAL;
  const Tensor& t = *w->constant;
  const int64_t filters = t.dim(0), size = filters > 0 ? t.elements() / filters : 0;
  double greatest = 0;
  for (int64_t f = 0; f < filters; ++f) {
    const int64_t points = zero ? zero->constant->elements() : 0;
    const int64_t point = points == 0 ? 0 : zero->constant->integer(points == 1 ? 0 : f % points);
    double sum = 0;
    for (int64_t i = 0; i < size; ++i) sum += static_cast<double>(std::abs(t.integer(f * size + i) - point));
    greatest = std::max(greatest, sum);
  }
  return greatest;
}

}  // namespace

Results import_qlinear_conv(NodeImport& n) {
  n.require_inputs(8, 9);
  const AttrMap attrs = window_attributes(n);
  Speller s(n);
  Value* x = dequantized(s, n.required(0), n.required(1), n.input(2), 1);
  Value* w = dequantized(s, n.required(3), n.required(4), n.input(5), 0);
  std::vector<Value*> operands{x, w};
  if (Value* bias = n.input(8))
    operands.push_back(dequantized(s, bias, s.op("mul", {n.required(1), n.required(4)}), nullptr, 0));
  Value* y = s.op("conv", operands, attrs);
  return {s.op("quantize_linear", {y, n.required(6), n.input(7)}, {{"axis", int64_t{1}}})};
}

namespace {

constexpr int64_t kSquaredCodes = 255 * 255;

bool is_single(const Value* value) {
  return !value || (value->type.shape.ranked && value->type.shape.elements() == Dim(1));
}

bool is_byte(const Value* value) { return value->type.dtype == DType::u8 || value->type.dtype == DType::i8; }

/// The sum of (a - z_a) (b - z_b), exactly: in f32 where its depth proves that it stays below 2^24.
Value* exact_product(Speller& s, NodeImport& n, Value* a, Value* b, Value* a_zero, Value* b_zero) {
  const Shape& shape = b->type.shape;
  const Dim depth = shape[shape.rank() - (shape.rank() > 1 ? 2 : 1)];
  if (b->is_constant() || !depth.is_constant() || depth.value() * kSquaredCodes >= int64_t{1} << 24)
    return product_of_codes(s, n, a, b, a_zero, b_zero);
  return s.op("matmul", {centred(s, a, a_zero, DType::f32, 2), centred(s, b, b_zero, DType::f32, 1)});
}

}  // namespace

/// Constant weights take the form that Q/DQ models have, for which there are kernels. Sums of other codes are exact
/// too, and one factor is behind them: f32(sum) (s_a s_b / s_y), as ONNX Runtime multiplies.
Results import_qlinear_matmul(NodeImport& n) {
  n.require_inputs(8, 8);
  Speller s(n);
  Value *a = n.required(0), *b = n.required(3);
  const bool ranked = a->type.shape.ranked && b->type.shape.ranked;
  if (ranked && is_byte(a) && is_byte(b) && !fits_i8(b, n.input(5)) && is_single(n.required(6)) &&
      is_single(n.input(7))) {
    const auto scale = [&](size_t i) { return s.cast(n.required(i), DType::f32); };
    Value *sum = exact_product(s, n, a, b, n.input(2), n.input(5)), *rows = scale(1);
    if (!is_single(rows) && rows->type.shape.rank() == 1) rows = s.unsqueeze(rows, 1);
    Value* factor = s.op("div", {s.op("mul", {rows, scale(4)}), scale(6)});
    Value* real = s.op("mul", {s.cast(sum, DType::f32), factor});
    return {s.op("quantize_linear", {real, s.number(1, DType::f32), n.input(7)})};
  }
  Value* left = dequantized(s, a, n.required(1), n.input(2), static_cast<int64_t>(rank_of(a)) - 2);
  Value* right = dequantized(s, b, n.required(4), n.input(5), static_cast<int64_t>(rank_of(b)) - 1);
  return {s.op("quantize_linear", {s.op("matmul", {left, right}), n.required(6), n.input(7)})};
}

Results import_matmul_integer(NodeImport& n) {
  n.require_inputs(2, 4);
  Speller s(n);
  return {product_of_codes(s, n, n.required(0), n.required(1), n.input(2), n.input(3))};
}

Results import_conv_integer(NodeImport& n) {
  n.require_inputs(2, 4);
  const AttrMap attrs = window_attributes(n);
  Speller s(n);
  Value* w = n.required(1);
  const bool small = 255 * greatest_filter(w, n.input(3)) < 0x1p24;
  const DType dtype = small ? DType::f32 : DType::f64;
  Value* x = centred(s, n.required(0), n.input(2), dtype, 1);
  Value* filters = centred(s, w, n.input(3), dtype, static_cast<int64_t>(rank_of(w)));
  return {s.cast(s.op("conv", {x, filters}, attrs), DType::i32)};
}

DynamicCodes dynamic_codes(Speller& s, Value* x) {
  const DType dtype = x->type.dtype;
  Value *zero = s.number(0, dtype), *steps = s.number(255, dtype);
  Value* high = s.op("max", {zero, s.op("reduce_max", {x}, {{"keepdims", false}})});
  Value* low = s.op("min", {zero, s.op("reduce_min", {x}, {{"keepdims", false}})});
  Value* range = s.op("sub", {high, low});
  range = s.op("where", {s.op("equal", {range, zero}), s.number(1, dtype), range});
  Value* scale = s.op("div", {range, steps});
  Value* point = s.op("clip", {s.op("div", {s.op("neg", {low}), scale}), zero, steps});
  point = s.cast(s.op("round", {point}), DType::u8);
  return {s.op("quantize_linear", {x, scale, point}), scale, point};
}

Results import_dynamic_quantize_linear(NodeImport& n) {
  n.require_inputs(1, 1);
  Speller s(n);
  const DynamicCodes all = dynamic_codes(s, n.required(0));
  return {all.codes, all.scale, all.zero};
}

}  // namespace opfuse::onnx
