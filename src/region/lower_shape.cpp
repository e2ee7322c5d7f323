// Operators whose results follow from shapes: what is left of them after folding has symbolic dimensions.
#include "expr/domain.hpp"
#include "ops/constant_of_shape.hpp"
#include "ops/eye_like.hpp"
#include "region/lowering.hpp"

namespace opfuse {
namespace {

Expr number(DType dtype, double value) {
  return is_float(dtype) ? Expr::constant(dtype, value) : Expr::integer(dtype, static_cast<int64_t>(value));
}

Expr pull_constant_of_shape(Lowering&, const Node& node, size_t, const IndexMap&) {
  return number(node.output()->type.dtype, node.as<ConstantOfShape>().value);
}

Expr pull_eye_like(Lowering&, const Node& node, size_t, const IndexMap& map) {
  const DType dtype = node.output()->type.dtype;
  const Expr diagonal = index_value(map.dims[1]) - index_value(map.dims[0]);
  return select(equal(diagonal, dim_value(Dim(node.as<EyeLike>().k))), number(dtype, 1), number(dtype, 0));
}

/// start + i * delta
Expr pull_range(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  auto scalar = [&](size_t input) {
    IndexMap first;
    first.dims.resize(node.input(input)->type.shape.rank());
    return lowering.pull(node.input(input), first);
  };
  const DType dtype = node.output()->type.dtype;
  const Expr index = index_value(map.dims[0]);
  return scalar(0) + (dtype == DType::i64 ? index : cast(index, dtype)) * scalar(2);
}

/// The dimension at the result's coordinate.
Expr pull_shape(Lowering&, const Node& node, size_t, const IndexMap& map) {
  const AttrView attrs(node);
  const Shape& x = node.input(0)->type.shape;
  const auto rank = static_cast<int64_t>(x.rank());
  int64_t start = attrs.integer("start", 0);
  if (start < 0) start = std::max<int64_t>(start + rank, 0);
  Expr value = dim_value(0);
  const Expr at = index_value(map.dims[0]);
  for (int64_t i = rank; i-- > start;)
    value = select(equal(at, dim_value(Dim(i - start))), dim_value(x[static_cast<size_t>(i)]), value);
  return value;
}

Expr pull_size(Lowering&, const Node& node, size_t, const IndexMap&) {
  return dim_value(node.input(0)->type.shape.elements());
}

constexpr LowerRule kRules[] = {{.op = "constant_of_shape", .pull = pull_constant_of_shape},
                                {.op = "eye_like", .pull = pull_eye_like},
                                {.op = "range", .pull = pull_range},
                                {.op = "shape", .pull = pull_shape},
                                {.op = "size", .pull = pull_size}};

}  // namespace

std::span<const LowerRule> shape_rules() { return kRules; }

}  // namespace opfuse
