// Linear quantisation, per tensor or along an axis, as arithmetic on elements; conversion to another value's type.
//   quantize    clamp(round_half_even(x / scale) + zero_point)        dequantize  (x - zero_point) * scale
//   floats of a byte: x / scale, clamped where they saturate; the type's own rounding does the rest
#include <cmath>
#include <optional>

#include "expr/domain.hpp"
#include "ops/dequantize_words.hpp"
#include "ops/quantize.hpp"
#include "region/index_map.hpp"
#include "region/integer_product.hpp"
#include "region/lowering.hpp"
#include "tensor/number.hpp"
#include "tensor/small_float.hpp"

namespace opfuse {
namespace {

/// A parameter of blocks: its coordinate along the axis is that of the element divided by the block's size.
Expr blocked_parameter(Lowering& lowering, const Node& node, size_t input, size_t axis, int64_t block,
                       const IndexMap& map) {
  IndexMap inner = IndexMap::identity(map.dims.size());
  inner.dims[axis].terms = {{1, static_cast<int>(axis), block}};
  return lowering.pull(node.input(input), compose(inner, map, lowering.extents()));
}

/// A parameter at the result's coordinates: one for all, one per index of the axis, or one per block of it.
Expr parameter(Lowering& lowering, const Node& node, size_t input, int64_t axis, int64_t block, const IndexMap& map) {
  const Shape& shape = node.input(input)->type.shape;
  IndexMap at;
  at.dims.resize(shape.rank());
  const auto rank = static_cast<int64_t>(map.dims.size());
  const auto along = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  if (block != 0) return blocked_parameter(lowering, node, input, along, block, map);
  if (shape.rank() == 1 && !(shape[0] == Dim(1))) at.dims[0] = map.dims[along];
  return lowering.pull(node.input(input), at);
}

/// The only element of a constant parameter; nothing: it is not a constant, or has more.
std::optional<double> single(const Lowering& lowering, const Value* value, double absent) {
  if (value == nullptr) return absent;
  const Tensor* constant = lowering.constant_of(value);
  if (constant == nullptr || constant->elements() != 1) return std::nullopt;
  return is_float(constant->dtype()) ? constant->real(0) : static_cast<double>(constant->integer(0));
}

/// Scales and the zero point of all codes.
struct CodeSteps {
  Steps scales;
  double zero = 0;
};

/// The parameters where they are constant, of the whole tensor or by channel, and behind a sum of codes.
template <class Attrs>
std::optional<CodeSteps> steps_of(const Lowering& lowering, const Node& node, const Attrs& attrs, const IndexMap& map) {
  const Tensor* scales = lowering.constant_of(node.input(1));
  const std::optional<int64_t> zero = zero_point_of_all(lowering, node.input(2));
  if (!lowering.requantises() || !scales || !zero || scales->dtype() != DType::f32 || attrs.block_size != 0 ||
      scales->elements() == 0)
    return std::nullopt;
  CodeSteps steps{.zero = static_cast<double>(*zero)};
  for (int64_t c = 0; c < scales->elements(); ++c) {
    const double scale = scales->real(c);
    if (!(scale > 0) || !std::isfinite(scale)) return std::nullopt;
    steps.scales.values.push_back(scale);
  }
  if (steps.scales.single()) return steps;
  const auto rank = static_cast<int64_t>(map.dims.size());
  steps.scales.channels.dims = {map.dims[static_cast<size_t>(attrs.axis < 0 ? attrs.axis + rank : attrs.axis)]};
  return steps;
}

/// saturate(rne(x / scale) + zero): between the codes' ends before the zero point is added, which is exact then.
Expr requantised(Lowering& lowering, const Expr& x, const CodeSteps& step, DType to, double low, double high) {
  const auto number = [](double v) { return Expr::constant(DType::f32, v); };
  const Expr q = round_even(divided(lowering, x, step.scales));
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
  const auto& attrs = node.as<QuantizeLinear>();
  const DType to = node.output()->type.dtype;
  if (bit_size(to) > 16) decline("dtype", "quantisation to more than 16 bits has no kernel", node);
  const double high = is_float(to) ? greatest_of(to) : static_cast<double>(integer_max(to));
  const double low = is_float(to) ? -high : static_cast<double>(integer_min(to));
  if (!is_float(to))
    if (const auto step = steps_of(lowering, node, attrs, map))
      return requantised(lowering, lowering.pull(node.input(0), map), *step, to, low, high);
  const Expr scale = parameter(lowering, node, 1, attrs.axis, attrs.block_size, map);
  const Expr x = cast(lowering.pull(node.input(0), map), scale.dtype());
  Expr q = is_float(to) ? x / scale : round_even(x / scale);
  if (node.input(2) != nullptr)
    q = q + cast(parameter(lowering, node, 2, attrs.axis, attrs.block_size, map), scale.dtype());
  if (is_float(to) && !attrs.saturate) return cast(q, to);
  return cast(minimum(maximum(q, Expr::constant(scale.dtype(), low)), Expr::constant(scale.dtype(), high)), to);
}

/// The number that a single constant code stands for, as quantisers write the 1 and 0.5 of a GELU. Exact in double,
/// then rounded as the operator rounds.
std::optional<Expr> single_number(const Lowering& lowering, const Node& node) {
  const DType dtype = DType::f32;
  if (node.output()->type.dtype != dtype || node.input(1)->type.dtype != dtype || is_float(node.input(0)->type.dtype))
    return std::nullopt;
  const auto code = single(lowering, node.input(0), 0), scale = single(lowering, node.input(1), 1);
  const auto zero = single(lowering, node.input(2), 0);
  if (!code || !scale || !zero) return std::nullopt;
  return Expr::constant(dtype, static_cast<float>((*code - *zero) * *scale));
}

Expr pull_dequantize(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  if (const std::optional<Expr> number = single_number(lowering, node)) return *number;
  const auto& attrs = node.as<DequantizeLinear>();
  const DType stored_as = node.input(0)->type.dtype, to = node.output()->type.dtype;
  if (!is_float(stored_as) && to == DType::f32)
    if (const auto step = steps_of(lowering, node, attrs, map))
      return without_zero(lowering.pull(node.input(0), map), step->zero) * factor_of(lowering, step->scales);
  const Expr scale = parameter(lowering, node, 1, attrs.axis, attrs.block_size, map);
  const Expr stored = lowering.pull(node.input(0), map);
  const DType centred = is_float(stored_as) ? scale.dtype() : DType::i32;
  Expr x = cast(stored, centred);
  if (node.input(2) != nullptr) x = x - cast(parameter(lowering, node, 2, attrs.axis, attrs.block_size, map), centred);
  return cast(cast(x, scale.dtype()) * scale, to);
}

/// (code - zero) * scale, the code being some bits of a word.
Expr pull_words(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  const auto& attrs = node.as<DequantizeWords>();
  const auto at = [&](const IndexTerm& row) {
    IndexMap inner = IndexMap::identity(2);
    inner.dims[0].terms = {row};
    return compose(inner, map, lowering.extents());
  };
  const Expr shift = cast(index_value(at({attrs.bits, 0, 1, attrs.unit()}).dims[0]), DType::i32);
  const Expr word = lowering.pull(node.input(0), at({1, 0, attrs.unit()}));
  const Expr mask = Expr::integer(DType::i32, (int64_t{1} << attrs.bits) - 1);
  const IndexMap block = at({1, 0, attrs.block_size});
  const Expr zero =
      node.input(2) ? cast(lowering.pull(node.input(2), block), DType::i32) : Expr::integer(DType::i32, attrs.zero);
  const Expr code = bit_and(shift_right(word, shift), mask) - zero;
  return cast(code, DType::f32) * cast(lowering.pull(node.input(1), block), DType::f32);
}

/// The second operand is never read.
Expr pull_cast_like(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  return cast(lowering.pull(node.input(0), map), node.output()->type.dtype);
}

constexpr LowerRule kRules[] = {{.op = "cast_like", .pull = pull_cast_like, .pointwise = true},
                                {.op = "quantize_linear", .pull = pull_quantize, .pointwise = true},
                                {.op = "dequantize_linear", .pull = pull_dequantize, .pointwise = true},
                                {.op = "dequantize_words", .pull = pull_words}};

}  // namespace

std::span<const LowerRule> quantize_rules() { return kRules; }

}  // namespace opfuse
