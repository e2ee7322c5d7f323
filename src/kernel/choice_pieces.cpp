#include "kernel/choice_pieces.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "expr/held_ops.hpp"
#include "kernel/reads.hpp"
#include "region/dependence.hpp"
#include "region/read_shape.hpp"

namespace opfuse {
namespace {

/// Between reads: an arm that is a constant is padding, which masks make.
bool is_choice(const Expr& e) {
  return e.op() == ExprOp::select && e.args()[0].op() == ExprOp::in_bounds && holds(e.args()[1], ExprOp::read) &&
         holds(e.args()[2], ExprOp::read);
}

/// The one domain axis that decides, and where it is inside.
struct Interval {
  int axis = -1;
  int64_t low = 0, high = 0;
};

std::optional<Interval> interval_of(const Region& region, const Stage& stage, const Expr& guard) {
  const Read& read = stage.reads[static_cast<size_t>(guard.index())];
  const Shape& shape = shape_read_by(region, read);
  std::optional<Interval> found;
  for (size_t d = 0; d < read.map.dims.size(); ++d) {
    const IndexExpr& e = read.map.dims[d];
    if (always_inside(e, shape[d], axis_extents(stage))) continue;
    if (found || e.dynamic || e.terms.size() != 1 || !e.offset.is_constant() || !shape[d].is_constant())
      return std::nullopt;
    const IndexTerm& t = e.terms[0];
    if (t.axis >= static_cast<int>(stage.domain.size()) || !(t.coef == Dim(1)) || !(t.div == Dim(1)) ||
        !(t.mod == Dim(0)))
      return std::nullopt;
    found = Interval{t.axis, -e.offset.value(), shape[d].value() - e.offset.value()};
  }
  return found;
}

/// Values that hold one of these operations, each of them node by node.
template <class F>
void visit_values(const Stage& stage, ExprOps ops, const F& each) {
  for (const Reduction& r : stage.reductions)
    if (holds(r.value, ops)) r.value.visit(each);
  for (const StageOutput& o : stage.outputs)
    if (holds(o.value, ops)) o.value.visit(each);
}

/// The coordinate with `low` added to an axis; false where a division would take it apart.
bool shift(IndexExpr& e, int axis, int64_t low) {
  for (IndexTerm& t : e.terms) {
    if (t.axis != axis) continue;
    const auto coef = t.coef.constant(), div = t.div.constant(), mod = t.mod.constant();
    if (!coef || !div || !mod || low % *div != 0) return false;
    if (*mod != 0 && low / *div % *mod != 0) return false;
    if (*mod == 0) e.offset = e.offset + Dim(*coef * (low / *div));
  }
  return true;
}

class Piece {
 public:
  Piece(const Region& region, const Stage& stage, int axis, int64_t low, int64_t high)
      : region_(region), stage_(stage), axis_(axis), low_(low) {
    stage_.domain[static_cast<size_t>(axis)] = Dim(high - low);
  }

  std::optional<Stage> make() {
    for (Read& read : stage_.reads)
      if (!shift_map(read.map)) return std::nullopt;
    for (StageOutput& o : stage_.outputs)
      if (!shift_map(o.map)) return std::nullopt;
    for (Reduction& r : stage_.reductions) r.value = decided(r.value);
    for (StageOutput& o : stage_.outputs) o.value = decided(o.value);
    drop_unread();
    return std::move(stage_);
  }

 private:
  const Region& region_;
  Stage stage_;
  int axis_;
  int64_t low_;

  Expr shifted(const Expr& e) const {
    return e.map_leaves([&](const Expr& leaf) {
      if (leaf.op() != ExprOp::coord || leaf.index() != axis_ || low_ == 0) return leaf;
      return Expr::make(ExprOp::add, {leaf, Expr::integer(DType::i64, low_)});
    });
  }

  bool shift_map(IndexMap& map) const {
    for (IndexExpr& e : map.dims) {
      if (!shift(e, axis_, low_)) return false;
      if (e.dynamic) e.dynamic = shifted(e.dynamic);
    }
    return true;
  }

  /// Inside or outside at all points, as far as that is known.
  std::optional<bool> inside(const Expr& guard) const {
    const Read& read = stage_.reads[static_cast<size_t>(guard.index())];
    const Shape& shape = shape_read_by(region_, read);
    const std::vector<Dim> extents = axis_extents(stage_);
    bool always = true;
    for (size_t d = 0; d < read.map.dims.size(); ++d) {
      if (always_inside(read.map.dims[d], shape[d], extents)) continue;
      always = false;
      const CoordinateRange range = coordinate_range(read.map.dims[d], extents);
      if (range.low && shape[d].is_constant() && *range.low >= shape[d].value()) return false;
      if (range.high && *range.high < 0) return false;
    }
    return always ? std::optional(true) : std::nullopt;
  }

  /// A select of a known condition becomes the arm that is taken: Expr::make folds it.
  Expr decided(const Expr& e) const {
    return shifted(e).map_leaves([&](const Expr& leaf) {
      if (leaf.op() != ExprOp::in_bounds) return leaf;
      const auto known = inside(leaf);
      return known ? Expr::integer(DType::boolean, *known ? 1 : 0) : leaf;
    });
  }

  void mark(const Expr& e, std::set<int>& used) const {
    if (!e) return;
    e.visit([&](const Expr& x) {
      if ((x.op() != ExprOp::read && x.op() != ExprOp::in_bounds) || !used.insert(x.index()).second) return;
      for (const IndexExpr& dim : stage_.reads[static_cast<size_t>(x.index())].map.dims) mark(dim.dynamic, used);
    });
  }

  void drop_unread() {
    std::set<int> used;
    visit_values(stage_, ExprOps(ExprOp::read) | ExprOp::in_bounds, [&](const Expr& e) {
      if (e.op() == ExprOp::read || e.op() == ExprOp::in_bounds) mark(e, used);
    });
    for (const StageOutput& o : stage_.outputs)
      for (const IndexExpr& dim : o.map.dims) mark(dim.dynamic, used);
    std::map<int, int> number;
    std::vector<Read> kept;
    for (const int read : used) {
      number[read] = static_cast<int>(kept.size());
      kept.push_back(stage_.reads[static_cast<size_t>(read)]);
    }
    const auto renamed = [&](const Expr& e) {
      return e.map_leaves([&](const Expr& leaf) {
        if (leaf.op() == ExprOp::read) return Expr::read(number.at(leaf.index()), leaf.dtype());
        return leaf.op() == ExprOp::in_bounds ? Expr::in_bounds(number.at(leaf.index())) : leaf;
      });
    };
    const auto rename_map = [&](IndexMap& map) {
      for (IndexExpr& dim : map.dims)
        if (dim.dynamic) dim.dynamic = renamed(dim.dynamic);
    };
    for (Reduction& r : stage_.reductions) r.value = renamed(r.value);
    for (StageOutput& o : stage_.outputs) o.value = renamed(o.value), rename_map(o.map);
    for (Read& read : kept) rename_map(read.map);
    stage_.reads = std::move(kept);
  }
};

}  // namespace

bool chooses_along(const Region& region, const Stage& stage, const Expr& e, int axis) {
  if (!is_choice(e)) return false;
  const auto interval = interval_of(region, stage, e.args()[0]);
  return interval && interval->axis == axis;
}

std::optional<ChoiceCut> cut_of_choices(const Region& region, const Stage& stage, size_t most) {
  std::set<int> rows;
  for (const Reduction& r : stage.reductions) rows.merge(axes_of(stage, r.value));
  std::map<int, std::set<int64_t>> cuts;
  visit_values(stage, ExprOp::in_bounds, [&](const Expr& e) {
    if (!is_choice(e)) return;
    const auto interval = interval_of(region, stage, e.args()[0]);
    if (!interval || (!stage.reductions.empty() && !rows.contains(interval->axis))) return;
    const auto extent = stage.domain[static_cast<size_t>(interval->axis)].constant();
    if (!extent) return;
    for (const int64_t at : {interval->low, interval->high})
      if (at > 0 && at < *extent) cuts[interval->axis].insert(at);
  });
  std::optional<ChoiceCut> best;
  for (const auto& [axis, inner] : cuts) {
    if (inner.size() + 1 > most || (best && inner.size() + 2 <= best->ends.size())) continue;
    best = ChoiceCut{axis, {0}};
    best->ends.insert(best->ends.end(), inner.begin(), inner.end());
    best->ends.push_back(stage.domain[static_cast<size_t>(axis)].value());
  }
  return best;
}

std::optional<Stage> piece_of(const Region& region, const Stage& stage, int axis, int64_t low, int64_t high) {
  return Piece(region, stage, axis, low, high).make();
}

}  // namespace opfuse
