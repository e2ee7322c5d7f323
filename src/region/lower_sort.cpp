// TopK by counting: the rank of an element is the number of elements that come before it (larger, or equal
// and earlier); result k is the element of rank k. Two row stages with the ranks between them. A NaN is larger than all
// numbers and equal to itself.
#include "expr/domain.hpp"
#include "ops/top_k.hpp"
#include "region/rows.hpp"

namespace opfuse {
namespace {

Expr comes_before(const Expr& other, const Expr& mine, const Expr& earlier, bool largest) {
  const Expr tie = logical_and(equal(other, mine), earlier);
  if (!is_float(mine.dtype())) return logical_or(largest ? greater(other, mine) : less(other, mine), tie);
  const Expr other_nan = is_nan(other);
  if (!largest)
    return select(is_nan(mine), logical_or(logical_not(other_nan), earlier), logical_or(less(other, mine), tie));
  const Expr larger = select(earlier, logical_not(less(other, mine)), logical_not(less_equal(other, mine)));
  return select(is_nan(mine), logical_and(other_nan, earlier), larger);
}

void lower_top_k(Lowering& lowering, const Node& node) {
  const TopK::Attrs& attrs = node.as<TopK>();
  const Shape& shape = node.input(0)->type.shape;
  const auto rank = static_cast<int64_t>(shape.rank());
  const int64_t axis = attrs.axis < 0 ? attrs.axis + rank : attrs.axis;
  const Expr zero = dim_value(0), one = dim_value(1);
  const Expr tap = Expr::coord(static_cast<int>(rank)), here = Expr::coord(static_cast<int>(axis));

  Row row = open_row(lowering, node.input(0), {axis});
  const Expr other = row.along(), mine = row.here();
  const Expr earlier = less(tap, here), before = comes_before(other, mine, earlier, attrs.largest);
  const Value* ranks = lowering.internal({DType::i64, shape});
  lowering.define(ranks, lowering.reduce(ReduceKind::sum, select(before, one, zero)));

  lowering.open(Anchor::row, node.output()->type.shape.dims, {shape[static_cast<size_t>(axis)]});
  const Expr chosen = equal(lowering.pull(ranks, row.reduce_map), here);
  const Expr x = lowering.pull(node.input(0), row.reduce_map);
  const Expr nothing = is_float(x.dtype()) ? Expr::constant(x.dtype(), 0) : Expr::integer(x.dtype(), 0);
  lowering.define(node.output(), lowering.reduce(ReduceKind::sum, select(chosen, x, nothing)));
  if (node.outputs.size() > 1)
    lowering.define(node.outputs[1], lowering.reduce(ReduceKind::sum, select(chosen, tap, zero)));
}

constexpr LowerRule kRules[] = {{.op = "top_k", .anchor = lower_top_k}};

}  // namespace

std::span<const LowerRule> sort_rules() { return kRules; }

}  // namespace opfuse
