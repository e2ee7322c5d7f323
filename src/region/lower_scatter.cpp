// Scatter as a gather: every result element looks through the updates that could hit it. Without a
// reduction the last update wins: its number is one reduction, its value the next.
//   scatter_elements   update j of the row hits element i when indices[.., j, ..] == i
//   scatter_nd         update b hits when the tuple indices[b, :] equals the first coordinates
#include <limits>

#include "expr/domain.hpp"
#include "ops/scatter.hpp"
#include "region/lowering.hpp"

namespace opfuse {
namespace {

Expr zero_of(DType dtype) { return is_float(dtype) ? Expr::constant(dtype, 0) : Expr::integer(dtype, 0); }
Expr one_of(DType dtype) { return is_float(dtype) ? Expr::constant(dtype, 1) : Expr::integer(dtype, 1); }

/// The element after all updates: `hit` says whether the update at the reduce axes is for this element,
/// `number` orders the updates.
Expr updated(Lowering& lowering, ScatterReduction law, const Expr& x, const Expr& update, const Expr& hit,
             const Expr& number) {
  const DType dtype = x.dtype();
  switch (law) {
    case ScatterReduction::add:
      return x + lowering.reduce(ReduceKind::sum, select(hit, update, zero_of(dtype)));
    case ScatterReduction::mul:
      return x * lowering.reduce(ReduceKind::product, select(hit, update, one_of(dtype)));
    case ScatterReduction::max:
      return maximum(x, lowering.reduce(ReduceKind::max, select(hit, update, x)));
    case ScatterReduction::min:
      return minimum(x, lowering.reduce(ReduceKind::min, select(hit, update, x)));
    case ScatterReduction::none:
      break;
  }
  const Expr last = lowering.reduce(ReduceKind::max, select(hit, number, dim_value(Dim(-1))));
  const Expr chosen = logical_and(hit, equal(number, last));
  const bool boolean = dtype == DType::boolean;
  const Expr plain = boolean ? cast(update, DType::i64) : update;
  Expr value = lowering.reduce(ReduceKind::sum, select(chosen, plain, zero_of(plain.dtype())));
  if (boolean) value = cast(value, DType::boolean);
  return select(less(last, dim_value(0)), x, value);
}

Expr wrapped(Expr index, const Dim& size) {
  if (index.dtype() != DType::i64) index = cast(index, DType::i64);
  return select(less(index, dim_value(0)), index + dim_value(size), index);
}

void lower_scatter_elements(Lowering& lowering, const Node& node) {
  const ScatterElements::Attrs& attrs = node.as<ScatterElements>();
  const Shape &x = node.input(0)->type.shape, &indices = node.input(1)->type.shape;
  const auto axis = static_cast<size_t>(attrs.axis < 0 ? attrs.axis + static_cast<int64_t>(x.rank()) : attrs.axis);
  lowering.open(Anchor::row, x.dims, {indices[axis]});
  IndexMap map = IndexMap::identity(x.rank());
  map.dims[axis] = IndexExpr{{{1, static_cast<int>(x.rank())}}, 0, {}};
  bool smaller = false;
  for (size_t d = 0; d < x.rank(); ++d) smaller |= d != axis && !(x[d] == indices[d]);
  const DType index_type = node.input(1)->type.dtype, dtype = node.output()->type.dtype;
  const Expr nowhere = Expr::integer(index_type, std::numeric_limits<int32_t>::max());
  const Expr index =
      smaller ? lowering.pull_guarded(node.input(1), map, nowhere, node) : lowering.pull(node.input(1), map);
  const Expr update =
      smaller ? lowering.pull_guarded(node.input(2), map, zero_of(dtype), node) : lowering.pull(node.input(2), map);
  const Expr hit = equal(wrapped(index, x[axis]), Expr::coord(static_cast<int>(axis)));
  const Expr here = lowering.pull(node.input(0), IndexMap::identity(x.rank()));
  const Expr number = Expr::coord(static_cast<int>(x.rank()));
  lowering.define(node.output(), updated(lowering, attrs.reduction, here, update, hit, number));
}

void lower_scatter_nd(Lowering& lowering, const Node& node) {
  const Shape &x = node.input(0)->type.shape, &indices = node.input(1)->type.shape;
  const size_t batch = indices.rank() - 1;
  if (!indices[batch].is_constant()) decline("dynamic_operand", "the length of an index tuple is not known", node);
  const auto tuple = static_cast<size_t>(indices[batch].value());
  lowering.open(Anchor::row, x.dims, std::vector<Dim>(indices.dims.begin(), indices.dims.end() - 1));
  IndexMap updates;
  Expr number = dim_value(0);
  for (size_t b = 0; b < batch; ++b) {
    const int axis = static_cast<int>(x.rank() + b);
    updates.dims.push_back(IndexExpr{{{1, axis}}, 0, {}});
    number = number * dim_value(indices[b]) + Expr::coord(axis);
  }
  IndexMap at = updates;
  at.dims.emplace_back();
  Expr hit;
  for (size_t k = 0; k < tuple; ++k) {
    at.dims[batch].offset = Dim(static_cast<int64_t>(k));
    const Expr same = equal(wrapped(lowering.pull(node.input(1), at), x[k]), Expr::coord(static_cast<int>(k)));
    hit = hit ? logical_and(hit, same) : same;
  }
  for (size_t d = tuple; d < x.rank(); ++d) updates.dims.push_back(IndexExpr{{{1, static_cast<int>(d)}}, 0, {}});
  const Expr update = lowering.pull(node.input(2), updates);
  const Expr here = lowering.pull(node.input(0), IndexMap::identity(x.rank()));
  lowering.define(node.output(), updated(lowering, node.as<ScatterND>().reduction, here, update,
                                         hit ? hit : Expr::integer(DType::boolean, 1), number));
}

constexpr LowerRule kRules[] = {{.op = "scatter_elements", .anchor = lower_scatter_elements},
                                {.op = "scatter_nd", .anchor = lower_scatter_nd}};

}  // namespace

std::span<const LowerRule> scatter_rules() { return kRules; }

}  // namespace opfuse
