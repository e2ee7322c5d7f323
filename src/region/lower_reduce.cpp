// Reductions over axes: reduce_*, the softmax family, arg_max/arg_min, cum_sum and cum_prod. Row stages; the domain is
// the result's shape. An operator whose result keeps the reduced axes (softmax) reads its operand twice, at the
// result's coordinates and along the row; the row's reductions depend on the other axes only.
#include <algorithm>
#include <limits>

#include "expr/domain.hpp"
#include "ops/arg_reduce.hpp"
#include "ops/cum_sum.hpp"
#include "ops/is_a.hpp"
#include "ops/softmax.hpp"
#include "region/rows.hpp"

namespace opfuse {

Expr Row::along() { return lowering.pull(value, reduce_map); }
Expr Row::here() { return lowering.pull(value, IndexMap::identity(value->type.shape.rank())); }
Expr Row::count(DType dtype) const { return cast(dim_value(elements), dtype); }

Row open_row(Lowering& lowering, const Value* value, const std::vector<int64_t>& axes) {
  const Shape& shape = value->type.shape;
  Row row{lowering, value, IndexMap::identity(shape.rank()), Dim(1)};
  std::vector<Dim> reduce;
  for (int64_t axis : axes) {
    row.reduce_map.dims[static_cast<size_t>(axis)] =
        IndexExpr{{{1, static_cast<int>(shape.rank() + reduce.size())}}, 0, {}};
    reduce.push_back(shape[static_cast<size_t>(axis)]);
    row.elements = row.elements * reduce.back();
  }
  lowering.open(Anchor::row, shape.dims, std::move(reduce));
  return row;
}

namespace {

int64_t wrapped(int64_t axis, size_t rank) { return axis < 0 ? axis + static_cast<int64_t>(rank) : axis; }

/// Axes of a reduce operator, ascending: operand, else attribute, else all (or none).
std::vector<int64_t> axes_of(Lowering& lowering, const Node& node) {
  const AttrView attrs(node);
  const size_t rank = node.input(0)->type.shape.rank();
  std::vector<int64_t> axes = node.input(1) != nullptr ? lowering.integers_of(node, 1) : attrs.integers("axes");
  if (axes.empty() && !attrs.flag("noop_with_empty_axes"))
    for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  for (int64_t& axis : axes) axis = wrapped(axis, rank);
  std::sort(axes.begin(), axes.end());
  return axes;
}

/// Opens the stage of a reduce operator: domain is the result, with or without the reduced axes.
Row open_reduce(Lowering& lowering, const Node& node, const std::vector<int64_t>& axes) {
  const Shape& x = node.input(0)->type.shape;
  const Shape& y = node.output()->type.shape;
  const bool keep = y.rank() == x.rank();
  Row row{lowering, node.input(0), {}, Dim(1)};
  std::vector<Dim> reduce;
  int kept = 0;
  for (size_t i = 0; i < x.rank(); ++i) {
    const bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    const int axis = reduced ? static_cast<int>(y.rank() + reduce.size()) : keep ? static_cast<int>(i) : kept;
    row.reduce_map.dims.push_back(IndexExpr{{{1, axis}}, 0, {}});
    if (reduced) {
      reduce.push_back(x[i]);
      row.elements = row.elements * x[i];
    } else {
      ++kept;
    }
  }
  lowering.open(Anchor::row, y.dims, std::move(reduce));
  return row;
}

void lower_reduce(Lowering& lowering, const Node& node) {
  const std::vector<int64_t> axes = axes_of(lowering, node);
  const Shape& shape = node.output()->type.shape;
  const DType dtype = node.output()->type.dtype;
  const std::string_view law = std::string_view(node.op->name).substr(7);  // after "reduce_"
  // Roots and logarithms of integers are those of reals, cut off.
  const bool of_reals = law == "l2" || law == "log_sum" || law == "log_sum_exp";
  const auto computed = [&](const Expr& value) {
    return of_reals && !is_float(dtype) ? cast(value, DType::f64) : value;
  };
  if (axes.empty()) {  // each element by itself
    lowering.open(Anchor::map, shape.dims, {});
    const Expr value = lowering.pull(node.input(0), IndexMap::identity(shape.rank()));
    Expr alone = value;
    if (law == "l1" || law == "l2") alone = abs(value);
    if (law == "sum_square") alone = value * value;
    if (law == "log_sum") alone = cast(log(computed(value)), dtype);
    return lowering.define(node.output(), alone);
  }
  Row row = open_reduce(lowering, node, axes);
  const Expr x = computed(row.along());
  auto sum = [&](const Expr& value) { return lowering.reduce(ReduceKind::sum, value); };
  Expr y;
  if (law == "sum") y = sum(x);
  if (law == "mean") y = sum(x) / row.count(x.dtype());
  if (law == "max") y = lowering.reduce(ReduceKind::max, x);
  if (law == "min") y = lowering.reduce(ReduceKind::min, x);
  if (law == "prod") y = lowering.reduce(ReduceKind::product, x);
  if (law == "l1") y = sum(abs(x));
  if (law == "l2") y = sqrt(sum(x * x));
  if (law == "sum_square") y = sum(x * x);
  if (law == "log_sum") y = log(sum(x));
  if (law == "log_sum_exp") {
    // An infinite maximum is the answer itself; subtracting it would give NaN.
    const Expr greatest = lowering.reduce(ReduceKind::max, x);
    const Expr top = select(is_inf(greatest), Expr::constant(x.dtype(), 0), greatest);
    y = top + log(sum(exp(x - top)));
  }
  if (!y) decline("no_lowering", "an unknown reduction", node);
  lowering.define(node.output(), y.dtype() == dtype ? y : cast(y, dtype));
}

Row open_softmax(Lowering& lowering, const Node& node) {
  const AttrView attrs(node);
  const size_t rank = node.input(0)->type.shape.rank();
  std::vector<int64_t> axes = {wrapped(attrs.integer("axis", -1), rank)};
  if (attrs.flag("flatten"))
    for (int64_t axis = axes[0] + 1; axis < static_cast<int64_t>(rank); ++axis) axes.push_back(axis);
  return open_row(lowering, node.input(0), axes);
}

void lower_softmax(Lowering& lowering, const Node& node) {
  Row row = open_softmax(lowering, node);
  const Expr top = lowering.reduce(ReduceKind::max, row.along());
  const Expr sum = lowering.reduce(ReduceKind::sum, exp(row.along() - top));
  const Expr here = row.here() - top;
  lowering.define(node.output(), is_a<Softmax>(node) ? exp(here) / sum : here - log(sum));
}

/// Position along an axis (reduce axis `tap`) of the largest or smallest element: the first, or the last. A NaN is
/// larger than all numbers, so it is the smallest only where there is nothing else.
Expr position(Lowering& lowering, const Expr& x, ReduceKind kind, int tap, bool last, const Dim& extent) {
  const bool nans = is_float(x.dtype()), smallest = kind == ReduceKind::min;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Expr number = nans && smallest ? select(is_nan(x), Expr::constant(x.dtype(), kInfinity), x) : x;
  const Expr best = lowering.reduce(kind, number);
  const Expr is_best = nans && !smallest ? logical_or(equal(x, best), is_nan(x)) : equal(x, best);
  const Expr at = Expr::coord(tap), none = Expr::integer(DType::i64, last ? -1 : std::numeric_limits<int64_t>::max());
  const Expr found = lowering.reduce(last ? ReduceKind::max : ReduceKind::min, select(is_best, at, none));
  if (!nans || !smallest) return found;
  return select(equal(found, none), last ? dim_value(extent - Dim(1)) : dim_value(0), found);
}

void lower_arg(Lowering& lowering, const Node& node) {
  const AttrView attrs(node);
  const size_t rank = node.input(0)->type.shape.rank();
  const int64_t axis = wrapped(attrs.integer("axis", 0), rank);
  Row row = open_reduce(lowering, node, {axis});
  const ReduceKind kind = is_a<ArgMax>(node) ? ReduceKind::max : ReduceKind::min;
  const int tap = static_cast<int>(node.output()->type.shape.rank());
  lowering.define(node.output(), position(lowering, row.along(), kind, tap, attrs.flag("select_last_index"),
                                          node.input(0)->type.shape[static_cast<size_t>(axis)]));
}

void lower_hardmax(Lowering& lowering, const Node& node) {
  const AttrView attrs(node);
  const size_t rank = node.input(0)->type.shape.rank();
  const int64_t axis = wrapped(attrs.integer("axis", -1), rank);
  if (attrs.flag("flatten") && axis + 1 != static_cast<int64_t>(rank))
    decline("flattened_hardmax", "hardmax over several axes has no kernel", node);
  Row row = open_row(lowering, node.input(0), {axis});
  const Expr x = row.along();
  const Expr first = position(lowering, x, ReduceKind::max, static_cast<int>(rank), false, Dim(0));
  const DType dtype = node.output()->type.dtype;
  lowering.define(node.output(), select(equal(Expr::coord(static_cast<int>(axis)), first), Expr::constant(dtype, 1),
                                        Expr::constant(dtype, 0)));
}

/// Sum along `axis` up to the result's own coordinate; `taps` is at least the axis's extent.
Expr running_sum(Lowering& lowering, const Node& node, size_t axis, bool guarded) {
  const AttrView attrs(node);
  const size_t rank = node.input(0)->type.shape.rank();
  const DType dtype = node.output()->type.dtype;
  const bool product = is_a<CumProd>(node);
  const Expr neutral = is_float(dtype) ? Expr::constant(dtype, product) : Expr::integer(dtype, product);
  IndexMap map = IndexMap::identity(rank);
  map.dims[axis] = IndexExpr{{{1, static_cast<int>(rank)}}, 0, {}};
  const Expr x = guarded ? lowering.pull_guarded(node.input(0), map, neutral, node) : lowering.pull(node.input(0), map);
  const Expr here = Expr::coord(static_cast<int>(axis)), at = Expr::coord(static_cast<int>(rank));
  const Expr before = attrs.flag("reverse") ? greater(at, here) : less(at, here);
  const Expr counted = attrs.flag("exclusive") ? before : logical_or(before, equal(at, here));
  return lowering.reduce(product ? ReduceKind::product : ReduceKind::sum, select(counted, x, neutral));
}

/// An axis known only at run time: the sums along all axes, and the one to take.
void lower_cum_sum(Lowering& lowering, const Node& node) {
  const Shape& shape = node.input(0)->type.shape;
  const size_t rank = shape.rank();
  if (const Tensor* given = lowering.constant_of(node.input(1)); given != nullptr || rank == 1) {
    const auto axis = static_cast<size_t>(given != nullptr ? wrapped(given->integer(0), rank) : 0);
    lowering.open(Anchor::row, shape.dims, {shape[axis]});
    return lowering.define(node.output(), running_sum(lowering, node, axis, false));
  }
  Dim longest = 1;
  for (const Dim& dim : shape.dims) longest = max(longest, dim);
  lowering.open(Anchor::row, shape.dims, {longest});
  IndexMap first;
  first.dims.resize(node.input(1)->type.shape.rank());
  Expr axis = lowering.pull(node.input(1), first);
  if (axis.dtype() != DType::i64) axis = cast(axis, DType::i64);
  axis = select(less(axis, dim_value(0)), axis + dim_value(Dim(static_cast<int64_t>(rank))), axis);
  Expr value = running_sum(lowering, node, 0, true);
  for (size_t a = 1; a < rank; ++a)
    value = select(equal(axis, dim_value(Dim(static_cast<int64_t>(a)))), running_sum(lowering, node, a, true), value);
  lowering.define(node.output(), value);
}

constexpr LowerRule kRules[] = {{.op = "reduce_sum", .anchor = lower_reduce},
                                {.op = "reduce_mean", .anchor = lower_reduce},
                                {.op = "reduce_max", .anchor = lower_reduce},
                                {.op = "reduce_min", .anchor = lower_reduce},
                                {.op = "reduce_prod", .anchor = lower_reduce},
                                {.op = "reduce_l1", .anchor = lower_reduce},
                                {.op = "reduce_l2", .anchor = lower_reduce},
                                {.op = "reduce_log_sum", .anchor = lower_reduce},
                                {.op = "reduce_log_sum_exp", .anchor = lower_reduce},
                                {.op = "reduce_sum_square", .anchor = lower_reduce},
                                {.op = "softmax", .anchor = lower_softmax},
                                {.op = "log_softmax", .anchor = lower_softmax},
                                {.op = "hardmax", .anchor = lower_hardmax},
                                {.op = "arg_max", .anchor = lower_arg},
                                {.op = "arg_min", .anchor = lower_arg},
                                {.op = "cum_sum", .anchor = lower_cum_sum},
                                {.op = "cum_prod", .anchor = lower_cum_sum}};

}  // namespace

std::span<const LowerRule> reduce_rules() { return kRules; }

}  // namespace opfuse
