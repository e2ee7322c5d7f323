// Linear quantisation, per tensor or along an axis, as arithmetic on elements; conversion to another value's type.
//   quantize    clamp(round_half_even(x / scale) + zero_point)        dequantize  (x - zero_point) * scale
#include "expr/domain.hpp"
#include "ops/quantize.hpp"
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

Expr pull_quantize(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  const int64_t axis = node.as<QuantizeLinear>().axis;
  const Expr scale = parameter(lowering, node, 1, axis, map);
  const Expr x = cast(lowering.pull(node.input(0), map), scale.dtype());
  Expr q = round_even(x / scale);
  if (node.input(2) != nullptr) q = q + cast(parameter(lowering, node, 2, axis, map), scale.dtype());
  const DType to = node.output()->type.dtype;
  const int bits = static_cast<int>(byte_size(to)) * 8;
  if (bits > 16) decline("dtype", "quantisation to more than 16 bits has no kernel", node);
  const double high = static_cast<double>((int64_t{1} << (is_signed(to) ? bits - 1 : bits)) - 1);
  const double low = is_signed(to) ? -high - 1 : 0;
  return cast(minimum(maximum(q, Expr::constant(scale.dtype(), low)), Expr::constant(scale.dtype(), high)), to);
}

Expr pull_dequantize(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  const int64_t axis = node.as<DequantizeLinear>().axis;
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
