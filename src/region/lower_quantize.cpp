// Linear quantisation, per tensor or along an axis, as arithmetic on elements; conversion to another value's type.
//   quantize    clamp(round_half_even(x / scale) + zero_point)        dequantize  (x - zero_point) * scale
#include <cmath>
#include <optional>

#include "expr/domain.hpp"
#include "ops/quantize.hpp"
#include "region/integer_product.hpp"
#include "region/lowering.hpp"

namespace opfuse {
namespace {

/// A parameter at the result's coordinates: one for all, or one per index of the axis.
Expr parameter(Lowering& lowering, const Node& node, size_t input, int64_t axis, const IndexMap& map) {
  const Shape& shape = node.input(input)->type.shape;
  IndexMap at;
  at.dims.resize(shape.rank());
  const auto rank = static_cast<int64_t>(map.dims.size());
  if (shape.rank() == 1 && !(shape[0] == Dim(1)))
    at.dims[0] = map.dims[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
  return lowering.pull(node.input(input), at);
}

/// The only element of a constant parameter; nothing: it is no constant, or has more.
std::optional<double> single(const Lowering& lowering, const Value* value, double absent) {
  if (value == nullptr) return absent;
  const Tensor* constant = lowering.constant_of(value);
  if (constant == nullptr || constant->elements() != 1) return std::nullopt;
  return is_float(constant->dtype()) ? constant->real(0) : static_cast<double>(constant->integer(0));
}

struct Step {
  double scale = 1, zero = 0;
};

/// The parameters where they are those of the whole tensor and behind a sum of codes.
std::optional<Step> step_of(const Lowering& lowering, const Node& node) {
  const auto scale = single(lowering, node.input(1), 1), zero = single(lowering, node.input(2), 0);
  const bool real = node.input(1)->type.dtype == DType::f32;
  if (!lowering.requantises() || !real || !scale || !zero || !(*scale > 0) || !std::isfinite(*scale))
    return std::nullopt;
  return Step{*scale, *zero};
}

/// saturate(rne(x / scale) + zero): between the codes' ends before the zero point is added, which is exact then.
Expr requantised(Lowering& lowering, const Expr& x, const Step& step, DType to, double low, double high) {
  const auto number = [](double v) { return Expr::constant(DType::f32, v); };
  const Expr q = round_even(divided(lowering, x, step.scale));
  const Expr code = minimum(maximum(q, number(low - step.zero)), number(high - step.zero));
  return cast(code + number(step.zero), to);
}

/// What was added to a code of this group's own to make it an unsigned number.
Expr without_zero(const Expr& code, double zero) {
  if (code.op() == ExprOp::cast && code.args()[0].op() == ExprOp::add && code.args()[0].dtype() == DType::f32) {
    const Expr& added = code.args()[0].args()[1];
    if (added.is_constant() && added.value() == zero) return code.args()[0].args()[0];
  }
  const Expr whole = cast(code, DType::i32);
  return cast(zero == 0 ? whole : whole - Expr::integer(DType::i32, static_cast<int64_t>(zero)), DType::f32);
}

Expr pull_quantize(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  const int64_t axis = node.as<QuantizeLinear>().axis;
  const std::optional<Step> step = step_of(lowering, node);
  const DType to = node.output()->type.dtype;
  const int bits = static_cast<int>(byte_size(to)) * 8;
  if (bits > 16) decline("dtype", "quantisation to more than 16 bits has no kernel", node);
  const double high = static_cast<double>((int64_t{1} << (is_signed(to) ? bits - 1 : bits)) - 1);
  const double low = is_signed(to) ? -high - 1 : 0;
  if (step) return requantised(lowering, lowering.pull(node.input(0), map), *step, to, low, high);
  const Expr scale = parameter(lowering, node, 1, axis, map);
  const Expr x = cast(lowering.pull(node.input(0), map), scale.dtype());
  Expr q = round_even(x / scale);
  if (node.input(2) != nullptr) q = q + cast(parameter(lowering, node, 2, axis, map), scale.dtype());
  return cast(minimum(maximum(q, Expr::constant(scale.dtype(), low)), Expr::constant(scale.dtype(), high)), to);
}

Expr pull_dequantize(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  const int64_t axis = node.as<DequantizeLinear>().axis;
  if (const std::optional<Step> step = step_of(lowering, node))
    return without_zero(lowering.pull(node.input(0), map), step->zero) * Expr::constant(DType::f32, step->scale);
  const Expr scale = parameter(lowering, node, 1, axis, map);
  Expr x = cast(lowering.pull(node.input(0), map), DType::i32);
  if (node.input(2) != nullptr) x = x - cast(parameter(lowering, node, 2, axis, map), DType::i32);
  return cast(x, scale.dtype()) * scale;
}

/// The second operand is never read.
Expr pull_cast_like(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  return cast(lowering.pull(node.input(0), map), node.output()->type.dtype);
}

constexpr LowerRule kRules[] = {{.op = "cast_like", .pull = pull_cast_like, .pointwise = true},
                                {.op = "quantize_linear", .pull = pull_quantize, .pointwise = true},
                                {.op = "dequantize_linear", .pull = pull_dequantize, .pointwise = true}};

}  // namespace

std::span<const LowerRule> quantize_rules() { return kRules; }

}  // namespace opfuse
