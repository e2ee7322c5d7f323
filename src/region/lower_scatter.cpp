// Indexed writes. Constant indices of a box are a movement of elements: a slice write, read back to front,
//   y[c] = inside box ? u[(c - start) / step] : x[c]
// and with a reduction the same of x[c] and u. All others are two stages that store into one result,
//   map      y = x
//   scatter  y[.., index[b], ..] (op)= u[b]   in the order of the updates, nothing where an index is outside
// Updates and indices are read through the prologues in front of them.
#include "base/fail.hpp"
#include "expr/domain.hpp"
#include "ops/is_a.hpp"
#include "ops/scatter.hpp"
#include "region/index_box.hpp"
#include "region/lowering.hpp"

namespace opfuse {
namespace {

/// A scatter of either kind, dimension by dimension of the result.
struct Scatter {
  const Node& node;
  const Shape &x = node.input(0)->type.shape, &indices = node.input(1)->type.shape, &u = node.input(2)->type.shape;
  bool elements = is_a<ScatterElements>(node);
  ScatterReduction law = elements ? node.as<ScatterElements>().reduction : node.as<ScatterND>().reduction;
  size_t batch = elements ? indices.rank() : indices.rank() - 1;  ///< axes of the updates that indices have

  size_t axis() const {
    const int64_t given = node.as<ScatterElements>().axis;
    return static_cast<size_t>(given < 0 ? given + static_cast<int64_t>(x.rank()) : given);
  }
  size_t tuple() const {
    if (!indices[batch].is_constant()) decline("dynamic_operand", "the length of an index tuple is not known", node);
    return static_cast<size_t>(indices[batch].value());
  }
  /// Which number of an index tuple counts along dimension `d`; -1: none, the updates' own axis does.
  int component(size_t d) const {
    if (elements) return d == axis() ? 0 : -1;
    return d < tuple() ? static_cast<int>(d) : -1;
  }
  int own_axis(size_t d) const { return static_cast<int>(elements ? d : batch + d - tuple()); }

  /// Where constant indices put the updates; nothing when they are not a box, or unknown.
  std::optional<std::vector<BoxDim>> box(const Lowering& lowering) const;
  Expr combined(const Expr& before, const Expr& update) const;
  std::optional<ReduceKind> combine() const;
};

std::optional<std::vector<BoxDim>> Scatter::box(const Lowering& lowering) const {
  const Tensor* known = lowering.constant_of(node.input(1));
  if (known == nullptr || !u.is_static()) return std::nullopt;
  const std::vector<int64_t> sizes(known->sizes().begin(), known->sizes().begin() + static_cast<std::ptrdiff_t>(batch));
  std::vector<BoxDim> dims;
  bool is_box = true;
  for (size_t d = 0; d < x.rank(); ++d) {
    dims.push_back({0, 1, -1});
    const int component = this->component(d);
    if (component < 0) dims.back().axis = own_axis(d);
    is_box = is_box && (component < 0 || x[d].is_constant());
    if (component < 0 || !x[d].is_constant()) continue;
    const auto values = counted_from_zero(*known, static_cast<size_t>(component), elements ? 1 : tuple(), x[d].value());
    if (!values)
      decline("index_outside", fmt::format("a constant index is outside dimension {} of {}", d, x.text()), node);
    const std::optional<BoxDim> dim = box_dim(*values, sizes);
    is_box = is_box && dim.has_value();
    if (dim) dims.back() = *dim;
  }
  if (!is_box || !fills_box(dims, u.evaluate({}))) return std::nullopt;
  return dims;
}

Expr Scatter::combined(const Expr& before, const Expr& update) const {
  switch (law) {
    case ScatterReduction::add:
      return before + update;
    case ScatterReduction::mul:
      return before * update;
    case ScatterReduction::max:
      return maximum(before, update);
    case ScatterReduction::min:
      return minimum(before, update);
    case ScatterReduction::none:
      break;
  }
  return update;
}

std::optional<ReduceKind> Scatter::combine() const {
  const bool boolean = node.output()->type.dtype == DType::boolean;  // a sum is "or", a product "and"
  switch (law) {
    case ScatterReduction::add:
      return boolean ? ReduceKind::max : ReduceKind::sum;
    case ScatterReduction::mul:
      return boolean ? ReduceKind::min : ReduceKind::product;
    case ScatterReduction::max:
      return ReduceKind::max;
    case ScatterReduction::min:
      return ReduceKind::min;
    case ScatterReduction::none:
      break;
  }
  return std::nullopt;
}

/// A box, and a law that is an expression: booleans have no sums.
bool is_slice_write(const Lowering& lowering, const Node& node) {
  const Scatter scatter{node};
  const bool boolean = node.output()->type.dtype == DType::boolean;
  return (scatter.law == ScatterReduction::none || !boolean) && scatter.box(lowering).has_value();
}

/// Coordinates of the updates as a function of those of the result, and when they are inside, apart from the updates'
/// own bounds.
struct BoxRead {
  IndexMap map;
  Expr inside, on_grid;
};

Expr both(const Expr& a, const Expr& b) { return a ? logical_and(a, b) : b; }

BoxRead box_read(const std::vector<BoxDim>& box, const Shape& u, const IndexMap& at) {
  BoxRead read;
  read.map.dims.resize(u.rank());
  for (size_t d = 0; d < box.size(); ++d) {
    const BoxDim& dim = box[d];
    const Expr c = index_value(at.dims[d]);
    if (dim.axis < 0) {
      read.on_grid = both(read.on_grid, equal(c, dim_value(Dim(dim.start))));
      continue;
    }
    const auto axis = static_cast<size_t>(dim.axis);
    const int64_t rest = dim.start % dim.step, skipped = dim.start / dim.step;
    read.map.dims[axis] = IndexExpr{{{1, static_cast<int>(d), dim.step}}, Dim(-skipped), {}};
    if (dim.step > 1) read.on_grid = both(read.on_grid, equal(mod(c, dim_value(Dim(dim.step))), dim_value(Dim(rest))));
    const Expr begin = dim_value(Dim(dim.start)), end = dim_value(Dim(dim.start) + Dim(dim.step) * u[axis]);
    if (dim.start > 0) read.inside = both(read.inside, logical_not(less(c, begin)));
    read.inside = both(read.inside, less(c, end));
  }
  return read;
}

Expr pull_slice_write(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  const Scatter scatter{node};
  const Expr before = lowering.pull(node.input(0), map);
  if (scatter.u.elements() == Dim(0)) return before;
  BoxRead read = box_read(*scatter.box(lowering), scatter.u, map);
  const Expr always = Expr::integer(DType::boolean, 1);
  const auto [inside, update] = lowering.pull_inside(node.input(2), compose(read.map, map, lowering.extents()),
                                                     read.inside ? read.inside : always, node);
  return select(read.on_grid ? logical_and(read.on_grid, inside) : inside, scatter.combined(before, update), before);
}

Expr wrapped(Expr index, const Dim& size) {
  if (index.dtype() != DType::i64) index = cast(index, DType::i64);
  return select(less(index, dim_value(0)), index + dim_value(size), index);
}

/// An index that is the same all along an axis is read once for it: exporters expand the indices of whole rows.
Expr pull_index(Lowering& lowering, const Node& node, const IndexMap& map) {
  const Tensor* known = lowering.constant_of(node.input(1));
  if (known == nullptr || known->elements() == 0) return lowering.pull(node.input(1), map);
  std::vector<int64_t> sizes = known->sizes(), values = known->to_i64();
  IndexMap at = map;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    int64_t inner = 1;  // elements from one coordinate of the axis to the next
    for (size_t later = axis + 1; later < sizes.size(); ++later) inner *= sizes[later];
    const int64_t count = sizes[axis];
    std::vector<int64_t> first;
    bool same = count > 1;
    for (size_t i = 0; i < values.size() && same; ++i) {
      const auto from = static_cast<int64_t>(i), line = from / (inner * count) * inner * count + from % inner;
      same = values[i] == values[static_cast<size_t>(line)];
      if (from == line) first.push_back(values[i]);
    }
    if (!same) continue;
    values = std::move(first);
    sizes[axis] = 1;
    at.dims[axis] = IndexExpr{};
  }
  if (sizes == known->sizes()) return lowering.pull(node.input(1), map);
  Tensor table(DType::i64, sizes);
  for (size_t i = 0; i < values.size(); ++i) table.set_integer(static_cast<int64_t>(i), values[i]);
  return lowering.pull_made(
      table.type(), [table] { return table; }, at);
}

void lower_scatter(Lowering& lowering, const Node& node) {
  const Scatter scatter{node};
  const IndexMap identity = IndexMap::identity(scatter.x.rank());
  lowering.open(Anchor::map, scatter.x.dims, {});
  lowering.define_part(node.output(), lowering.pull(node.input(0), identity), identity);
  lowering.open(Anchor::scatter, scatter.u.dims, {});
  IndexMap store;
  for (size_t d = 0; d < scatter.x.rank(); ++d) {
    IndexExpr at;
    if (const int component = scatter.component(d); component >= 0) {
      IndexMap index = IndexMap::identity(scatter.batch);
      if (!scatter.elements) index.dims.push_back(IndexExpr{{}, Dim(component), {}});
      const Expr found = scatter.elements ? pull_index(lowering, node, index) : lowering.pull(node.input(1), index);
      at.dynamic = wrapped(found, scatter.x[d]);
    } else {
      at.terms.push_back({1, scatter.own_axis(d)});
    }
    store.dims.push_back(std::move(at));
  }
  const Expr update = lowering.pull(node.input(2), IndexMap::identity(scatter.u.rank()));
  lowering.define_part(node.output(), update, std::move(store), scatter.combine());
}

constexpr LowerRule kRules[] = {{.op = "scatter_elements",
                                 .anchor = lower_scatter,
                                 .pull = pull_slice_write,
                                 .pointwise = true,
                                 .moves = is_slice_write},
                                {.op = "scatter_nd",
                                 .anchor = lower_scatter,
                                 .pull = pull_slice_write,
                                 .pointwise = true,
                                 .moves = is_slice_write}};

}  // namespace

std::span<const LowerRule> scatter_rules() { return kRules; }

}  // namespace opfuse
