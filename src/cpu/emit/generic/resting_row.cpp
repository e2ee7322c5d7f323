#include "cpu/emit/generic/resting_row.hpp"

#include <algorithm>
#include <map>

#include "expr/real_ops.hpp"
#include "kernel/reads.hpp"
#include "region/dependence.hpp"

namespace opfuse::cpu {
namespace {

constexpr size_t kMostNodes = 256;  // of a value that is searched

/// The same stage of expressions that this library made: equal ones are one node then. It has a table of its own, and
/// the stage comes from whoever opened the library.
Stage made_here(Stage stage) {
  const auto made = [](const Expr& value) {
    return value.map_leaves([](const Expr& leaf) {
      switch (leaf.op()) {
        case ExprOp::read:
          return Expr::read(leaf.index(), leaf.dtype());
        case ExprOp::in_bounds:
          return Expr::in_bounds(leaf.index());
        case ExprOp::coord:
          return Expr::coord(leaf.index());
        default:
          return leaf;
      }
    });
  };
  for (Reduction& r : stage.reductions) r.value = made(r.value);
  for (StageOutput& o : stage.outputs) o.value = made(o.value);
  return stage;
}

class Search {
 public:
  Search(const Kernel& k, const StageEmitter& s, const NestPlan& plan)
      : k_(k), s_(s), stage_(made_here(s.stage)), plan_(plan), domain_(static_cast<int>(s.stage.domain.size())) {}

  std::optional<RestingRow> run() {
    if (plan_.reduce_lane < 0 || s_.clips() || !pair_axes()) return std::nullopt;
    for (size_t o = 0; o < stage_.outputs.size(); ++o)
      if (can_hold(o))
        if (auto found = in_output(o)) return found;
    return std::nullopt;
  }

 private:
  const Kernel& k_;
  const StageEmitter& s_;
  const Stage stage_;
  const NestPlan& plan_;
  int domain_;
  std::map<int, int> reduce_axis_;  ///< by the domain axis that runs along the row

  /// A row is as long when it is stored as when it is summed.
  bool pair_axes() {
    std::vector<int> inner = plan_.inner;
    std::sort(inner.begin(), inner.end());
    if (inner.size() != stage_.reduce.size()) return false;
    for (size_t i = 0; i < inner.size(); ++i) {
      if (!(stage_.domain[static_cast<size_t>(inner[i])] == stage_.reduce[i])) return false;
      reduce_axis_[inner[i]] = domain_ + static_cast<int>(i);
    }
    return true;
  }

  /// Every point has an element of its own, in the type of the value, and vectors of the sum are vectors of it.
  bool can_hold(size_t o) const {
    const StageOutput& output = stage_.outputs[o];
    if (output.param < 0 || !s_.outputs[o].base || output.dtype != DType::f32 || output.value.dtype() != DType::f32 ||
        output.combine)
      return false;
    std::set<int> axes;
    for (const IndexExpr& e : output.map.dims) {
      if (e.dynamic) return false;
      for (const IndexTerm& t : e.terms)
        if (!axes.insert(t.axis).second) return false;  // an axis in two dimensions, or cut by a division
      if (e.terms.size() > 1) return false;
    }
    for (int axis = 0; axis < domain_; ++axis)
      if (!axes.contains(axis) && !(stage_.domain[static_cast<size_t>(axis)] == Dim(1))) return false;
    return lane_shape(s_.outputs[o], by_reduction(output.map), plan_.reduce_lane, plan_.reduce_width).step == 1;
  }

  IndexMap by_reduction(IndexMap map) const {
    for (IndexExpr& e : map.dims)
      for (IndexTerm& t : e.terms)
        if (const auto at = reduce_axis_.find(t.axis); at != reduce_axis_.end()) t.axis = at->second;
    return map;
  }

  /// The same value at the points of the reductions; empty where these do not read what it reads.
  Expr by_reduction(const Expr& value) const {
    bool known = true;
    const auto number = [&](int index) {
      Read read = stage_.reads[static_cast<size_t>(index)];
      for (const IndexExpr& e : read.map.dims) known &= !e.dynamic;
      read.map = by_reduction(read.map);
      const auto at = std::find(stage_.reads.begin(), stage_.reads.end(), read);
      known &= at != stage_.reads.end();
      return static_cast<int>(at - stage_.reads.begin());
    };
    const Expr moved = value.map_leaves([&](const Expr& leaf) {
      const auto along = leaf.op() == ExprOp::coord ? reduce_axis_.find(leaf.index()) : reduce_axis_.end();
      if (along != reduce_axis_.end()) return Expr::coord(along->second);
      if (leaf.op() == ExprOp::read) return Expr::read(number(leaf.index()), leaf.dtype());
      return leaf.op() == ExprOp::in_bounds ? Expr::in_bounds(number(leaf.index())) : leaf;
    });
    return known ? moved : Expr();
  }

  bool along_row(const Expr& value) const {
    const std::set<int> axes = axes_of(stage_, value);
    return std::any_of(plan_.inner.begin(), plan_.inner.end(), [&](int axis) { return axes.contains(axis); });
  }

  /// Worth a store and a load: a function or a division; of what is stored anyway, any operation.
  static bool pays(const Expr& value, bool whole) {
    if (value.args().empty()) return false;
    bool dear = whole;
    value.visit([&](const Expr& e) { dear |= is_function(e.op()) || e.op() == ExprOp::pow; });
    return dear;
  }

  std::optional<RestingRow> in_output(size_t o) const {
    const std::vector<Expr> nodes = nodes_of(stage_.outputs[o].value);
    if (nodes.size() > kMostNodes) return std::nullopt;
    for (size_t n = nodes.size(); n-- > 0;) {
      const bool whole = nodes[n] == stage_.outputs[o].value;
      if (nodes[n].dtype() != DType::f32 || nodes[n].weak() || !pays(nodes[n], whole) || !along_row(nodes[n])) continue;
      const Expr there = by_reduction(nodes[n]);
      if (!there) continue;
      for (size_t r = 0; r < stage_.reductions.size(); ++r)
        for (const Expr& e : nodes_of(stage_.reductions[r].value))
          if (e == there) {
            RestingRow found = resting(o, static_cast<int>(r), nodes[n], e, whole);
            if (!reads_place(found)) return found;
          }
    }
    return std::nullopt;
  }

  RestingRow resting(size_t o, int reduction, const Expr& value, const Expr& reduced, bool whole) const {
    const StageOutput& output = stage_.outputs[o];
    RestingRow row{stage_, reduction, reduced, o, by_reduction(output.map), whole};
    const auto index = static_cast<int>(stage_.reads.size());
    row.stage.reads.push_back({-1, output.param, row.map});
    row.stage.reads.push_back({-1, output.param, output.map});
    for (size_t r = static_cast<size_t>(reduction) + 1; r < stage_.reductions.size(); ++r)
      row.stage.reductions[r].value = replaced(stage_.reductions[r].value, reduced, Expr::read(index, DType::f32));
    for (StageOutput& later : row.stage.outputs)
      later.value = replaced(later.value, value, Expr::read(index + 1, DType::f32));
    return row;
  }

  /// A result may lie where an operand of its size lies (program/in_place.hpp): the pass that stores may read that only
  /// where it stores, and nothing may read it later.
  bool reads_place(const RestingRow& row) const {
    const auto pass = static_cast<size_t>(row.reduction);
    std::set<int> later;
    const auto collect = [&](const Expr& e) { later.merge(reads_used(e)); };
    for (size_t r = pass + 1; r < row.stage.reductions.size(); ++r) collect(row.stage.reductions[r].value);
    for (size_t o = 0; o < row.stage.outputs.size(); ++o)
      if (!row.finished || o != row.output) collect(row.stage.outputs[o].value);
    const std::set<int> now = reads_used(row.stage.reductions[pass].value);
    return std::any_of(later.begin(), later.end(), [&](int i) { return may_lie_there(row, read_of(row, i)); }) ||
           std::any_of(now.begin(), now.end(),
                       [&](int i) { return may_lie_there(row, read_of(row, i)) && !(read_of(row, i).map == row.map); });
  }

  static const Read& read_of(const RestingRow& row, int i) { return row.stage.reads[static_cast<size_t>(i)]; }

  bool may_lie_there(const RestingRow& row, const Read& read) const {
    return may_share_memory(k_.spec.region, read, stage_.outputs[row.output]);
  }
};

}  // namespace

std::optional<RestingRow> find_resting_row(const Kernel& k, const StageEmitter& stage, const NestPlan& plan) {
  return Search(k, stage, plan).run();
}

}  // namespace opfuse::cpu
