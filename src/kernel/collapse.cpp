// Merging axes a and a+1:  (a, a+1) -> a' = a * extent(a+1) + (a+1)
// allowed when every tensor either ignores both, or has two dimensions (d, d+1) indexed exactly by them,
// of exactly their extents, neighbours in memory with stride(d) == stride(d+1) * extent(d+1); those two
// dimensions merge as well. Then a 1x1 convolution sees one pixel axis and an elementwise kernel one axis.
#include "kernel/collapse.hpp"

#include <algorithm>

#include "expr/held_ops.hpp"
#include "region/dependence.hpp"
#include "region/single_stage.hpp"

namespace opfuse {
namespace {

Expr renumber(const Expr& e, const std::vector<int>& to) {
  if (!holds(e, ExprOp::coord)) return e;
  return e.map_leaves([&](const Expr& leaf) {
    if (leaf.op() != ExprOp::coord) return leaf;
    const int axis = to[static_cast<size_t>(leaf.index())];
    return axis < 0 ? Expr::integer(DType::i64, 0) : Expr::coord(axis);
  });
}

void renumber(IndexMap& map, const std::vector<int>& to) {
  for (IndexExpr& e : map.dims) {
    std::erase_if(e.terms, [&](const IndexTerm& t) { return to[static_cast<size_t>(t.axis)] < 0; });
    for (IndexTerm& t : e.terms) t.axis = to[static_cast<size_t>(t.axis)];
    e.dynamic = renumber(e.dynamic, to);
  }
}

/// Applies an axis renumbering (-1: the axis is always 0) to everything in a stage.
void renumber(Stage& stage, const std::vector<int>& to) {
  if (std::is_sorted(to.begin(), to.end()) && (to.empty() || (to.front() == 0 && to.back() + 1 == std::ssize(to))))
    return;
  for (Read& r : stage.reads) renumber(r.map, to);
  for (Reduction& r : stage.reductions) r.value = renumber(r.value, to);
  for (StageOutput& o : stage.outputs) {
    renumber(o.map, to);
    o.value = renumber(o.value, to);
  }
}

bool uses_coord(const Expr& e, int a, int b) {
  bool used = false;
  if (holds(e, ExprOp::coord))
    e.visit([&](const Expr& x) { used |= x.op() == ExprOp::coord && (x.index() == a || x.index() == b); });
  return used;
}

class Merger {
 public:
  Merger(Collapsed& c, Stage& stage) : c_(c), stage_(stage) {}

  void run() {
    for (int axis = 0; axis + 1 < static_cast<int>(stage_.domain.size());)
      if (!merge(axis)) ++axis;
    for (int i = 0; i + 1 < static_cast<int>(stage_.reduce.size());)
      if (!merge(static_cast<int>(stage_.domain.size()) + i)) ++i;
  }

 private:
  Collapsed& c_;
  Stage& stage_;

  Dim& extent(int axis) {
    const auto domain = static_cast<int>(stage_.domain.size());
    return axis < domain ? stage_.domain[static_cast<size_t>(axis)] : stage_.reduce[static_cast<size_t>(axis - domain)];
  }

  static bool is_axis(const IndexExpr& e, int axis) {
    return !e.dynamic && e.offset == Dim(0) && e.terms.size() == 1 && e.terms[0] == IndexTerm{1, axis, 1, 0};
  }

  /// -1: the map ignores both axes; -2: cannot merge; d: dimensions d and d+1 are the two axes.
  static int merged_dim(const IndexMap& map, int axis) {
    int at = -1;
    for (size_t d = 0; d < map.dims.size(); ++d) {
      const IndexExpr& e = map.dims[d];
      if (uses_coord(e.dynamic, axis, axis + 1)) return -2;
      const bool touches = std::any_of(e.terms.begin(), e.terms.end(),
                                       [&](const IndexTerm& t) { return t.axis == axis || t.axis == axis + 1; });
      if (!touches) continue;
      if (at >= 0 && static_cast<int>(d) == at + 1) continue;  // checked with its partner
      if (at >= 0 || d + 1 >= map.dims.size() || !is_axis(e, axis) || !is_axis(map.dims[d + 1], axis + 1)) return -2;
      at = static_cast<int>(d);
    }
    return at;
  }

  bool contiguous(int param, int dim, int axis) {
    const Shape& shape = c_.region.params[static_cast<size_t>(param)].type.shape;
    const ParamLayout& l = c_.layouts[static_cast<size_t>(param)];
    const auto d = static_cast<size_t>(dim);
    if (!(shape[d] == extent(axis)) || !(shape[d + 1] == extent(axis + 1))) return false;
    if (l.layout.block_of(dim) != 1 || l.layout.block_of(dim + 1) != 1) return false;
    const auto first = std::find(l.layout.order.begin(), l.layout.order.end(), dim);
    if (first + 1 == l.layout.order.end() || *(first + 1) != dim + 1) return false;
    const auto i = static_cast<size_t>(first - l.layout.order.begin());
    return l.strides[i] == l.strides[i + 1] * shape[d + 1];
  }

  /// The dimension of every parameter that merges (-1: none), or nullopt when one forbids it.
  std::optional<std::vector<int>> plan(int axis) {
    std::vector<int> dims(c_.region.params.size(), -1);
    std::vector<bool> seen(dims.size(), false);
    const auto agree = [&](int param, const IndexMap& map) {
      const int dim = merged_dim(map, axis);
      if (dim == -2) return false;
      auto& known = dims[static_cast<size_t>(param)];
      if (seen[static_cast<size_t>(param)] && known != dim) return false;
      seen[static_cast<size_t>(param)] = true;
      known = dim;
      return dim < 0 || contiguous(param, dim, axis);
    };
    for (const Read& r : stage_.reads)
      if (r.stage >= 0 || !agree(r.index, r.map)) return std::nullopt;
    for (const StageOutput& o : stage_.outputs)
      if (o.param < 0 || !agree(o.param, o.map) || uses_coord(o.value, axis, axis + 1)) return std::nullopt;
    for (const Reduction& r : stage_.reductions)
      if (uses_coord(r.value, axis, axis + 1)) return std::nullopt;
    return dims;
  }

  void merge_dim(IndexMap& map, int dim) { map.dims.erase(map.dims.begin() + dim + 1); }

  void merge_param(int param, int dim) {
    Shape& shape = c_.region.params[static_cast<size_t>(param)].type.shape;
    ParamLayout& l = c_.layouts[static_cast<size_t>(param)];
    const auto d = static_cast<size_t>(dim);
    shape[d] = shape[d] * shape[d + 1];
    shape.dims.erase(shape.dims.begin() + dim + 1);
    const auto at = std::find(l.layout.order.begin(), l.layout.order.end(), dim);
    const auto i = at - l.layout.order.begin();
    l.layout.order.erase(at);  // dim + 1 stays in its place, with its stride
    l.strides.erase(l.strides.begin() + i);
    for (int& o : l.layout.order) o -= o > dim;
    for (Block& b : l.layout.blocks) b.axis -= b.axis > dim;
  }

  bool merge(int axis) {
    const auto dims = plan(axis);
    if (!dims) return false;
    for (Read& r : stage_.reads)
      if (const int d = (*dims)[static_cast<size_t>(r.index)]; d >= 0) merge_dim(r.map, d);
    for (StageOutput& o : stage_.outputs)
      if (const int d = (*dims)[static_cast<size_t>(o.param)]; d >= 0) {
        merge_dim(o.map, d);
        o.shape[static_cast<size_t>(d)] = o.shape[static_cast<size_t>(d)] * o.shape[static_cast<size_t>(d) + 1];
        o.shape.dims.erase(o.shape.dims.begin() + d + 1);
      }
    for (size_t p = 0; p < dims->size(); ++p)
      if ((*dims)[p] >= 0) merge_param(static_cast<int>(p), (*dims)[p]);
    const Dim product = extent(axis) * extent(axis + 1);
    std::vector<int> to;
    const auto count = static_cast<int>(stage_.domain.size() + stage_.reduce.size());
    for (int a = 0; a < count; ++a) to.push_back(a > axis ? a - 1 : a);
    extent(axis) = product;
    const auto domain = static_cast<int>(stage_.domain.size());
    if (axis < domain)
      stage_.domain.erase(stage_.domain.begin() + axis + 1);
    else
      stage_.reduce.erase(stage_.reduce.begin() + axis - domain + 1);
    renumber(stage_, to);
    return true;
  }
};

/// The output axis of weights stays even when there is one output channel: it is what vectors run along.
std::set<int> weight_axes(const Region& region) {
  std::set<int> keep;
  const Stage& stage = region.stages[0];
  if (stage.anchor != Anchor::contraction) return keep;
  const auto domain = static_cast<int>(stage.domain.size());
  for (const Read& r : stage.reads) {
    if (r.stage >= 0 || region.params[static_cast<size_t>(r.index)].role != ParamRole::constant) continue;
    const std::set<int> axes = axes_of(r.map);
    if (axes.empty() || *axes.rbegin() < domain) continue;
    for (int axis : axes)
      if (axis < domain) keep.insert(axis);
  }
  return keep;
}

void drop_unit_axes(Stage& stage, const std::set<int>& keep) {
  std::vector<int> to;
  int next = 0;
  for (auto* extents : {&stage.domain, &stage.reduce}) {
    std::vector<Dim> kept;
    for (const Dim& d : *extents) {
      const bool drop = d == Dim(1) && !keep.count(static_cast<int>(to.size()));
      to.push_back(drop ? -1 : next++);
      if (!drop) kept.push_back(d);
    }
    *extents = kept;
  }
  renumber(stage, to);
}

}  // namespace

Region without_unit_axes(const Region& region) {
  Region simple = region;
  if (is_single_stage(region)) drop_unit_axes(simple.stages[0], weight_axes(region));
  return simple;
}

Collapsed collapse(const Region& region, const std::vector<ParamLayout>& layouts) {
  Collapsed c{region, layouts};
  if (!is_single_stage(region)) return c;
  // an axis stored in blocks stays: its padding lanes have to be written
  std::set<int> keep = weight_axes(c.region);
  for (const StageOutput& o : c.region.stages[0].outputs)
    for (const Block& b : o.param < 0 ? std::vector<Block>{} : layouts[static_cast<size_t>(o.param)].layout.blocks)
      for (const IndexTerm& t : o.map.dims[static_cast<size_t>(b.axis)].terms) keep.insert(t.axis);
  drop_unit_axes(c.region.stages[0], keep);
  Merger(c, c.region.stages[0]).run();
  return c;
}

}  // namespace opfuse
