// Costs of groups from their region alone.
//
//   cycles = launch + overlapped(instructions, bytes / rate)
//
// Bytes are those of operands and results, at the rate of the level that holds them all. Instructions are counted per
// vector: of each expression by kind, of each access by how it walks along the lanes (one after the other, the same for
// all, turned in registers, or element by element). The lanes are tried on every axis, as the plain nest chooses them.
// A contraction computes what stands in front of its data once per tile of output channels, element by element: that is
// what makes most prologues of contractions slow. What a vector of each costs is the target's ([costs] of its file).
#include "cpu/group_cost.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "cpu/lane_walk.hpp"
#include "cpu/memory_rates.hpp"
#include "cpu/operation_cost.hpp"
#include "cpu/product_rows/product_rows_cost.hpp"
#include "cpu/rested_value.hpp"
#include "cpu/skeletons.hpp"
#include "expr/held_ops.hpp"
#include "expr/real_ops.hpp"
#include "kernel/choice_pieces.hpp"
#include "kernel/collapse.hpp"
#include "kernel/reads.hpp"
#include "kernel/views.hpp"
#include "region/dependence.hpp"
#include "region/read_shape.hpp"
#include "region/single_stage.hpp"
#include "region/traffic.hpp"

namespace opfuse {
namespace {

constexpr double kGatheredTap = 1.6;  // of an element: its lanes are put together one after the other (Zen 3)
constexpr double kRowTail = 1.5;      // vectors of a row's functions that nothing overlaps with (Zen 3)

class StageCost {
 public:
  StageCost(const Region& region, const Stage& stage, const TargetInfo& target, LayoutGuess guess)
      : region_(region),
        stage_(stage),
        costs_(target.costs),
        lanes_(static_cast<double>(target.lanes_f32())),
        loss_(target.kernels.overlap_loss),
        guess_(guess),
        walks_(stage, target, guess),
        masks_bytes_(target.has("avx512bw")),
        rested_(stage),
        guarded_(guarded_reads(stage)) {
    for (const Dim& d : stage.domain) extents_.push_back(extent_of(d));
    domain_ = static_cast<int>(extents_.size());
    for (const Dim& d : stage.reduce) extents_.push_back(extent_of(d));
    cut_ = cut_of_choices(region, stage);
    for (const Reduction& r : stage.reductions)
      for (const int axis : axes_of(stage, r.value))
        if (axis < domain_) rows_.insert(axis);
  }

  /// `tiled`: some skeleton has register tiles for it.
  double work(const TargetInfo& target, bool tiled) {
    if (stage_.anchor == Anchor::contraction && tiled) return contraction(target);
    return nest();
  }

 private:
  const Region& region_;
  const Stage& stage_;
  const VectorCosts& costs_;
  double lanes_;
  double loss_;  ///< of two things that overlap
  LayoutGuess guess_;
  LaneWalks walks_;
  bool masks_bytes_;  ///< loads of bytes under a mask are one instruction
  RestedValue rested_;
  std::set<int> guarded_;
  std::vector<double> extents_;
  int domain_ = 0;
  std::optional<ChoiceCut> cut_;
  std::set<int> rows_;  ///< domain axes that some reduction depends on: together they number the rows
  struct Numbered {
    const Expr* e;
    size_t number;
  };
  struct NodeCost {
    double work = 0, load = 0, index = 0;
  };
  mutable std::unordered_map<const ExprNode*, std::vector<Numbered>> nodes_;  ///< of values, operands first
  mutable std::unordered_map<const ExprNode*, size_t> numbers_;
  mutable std::map<std::pair<int, bool>, std::vector<std::optional<NodeCost>>> known_;  ///< by axis and `reduced`
  mutable std::map<int, std::vector<std::optional<bool>>> jumps_;                       ///< by axis
  mutable std::unordered_map<const ExprNode*, bool> outside_;                           ///< of the loop over a row

  /// Each value is looked at for each axis that the lanes may take.
  const std::vector<Numbered>& nodes(const Expr& value) const {
    const auto [at, fresh] = nodes_.try_emplace(value.node());
    if (fresh)
      value.visit([&, &all = at->second](const Expr& e) {
        all.push_back({&e, numbers_.emplace(e.node(), numbers_.size()).first->second});
      });
    return at->second;
  }

  double points(const std::set<int>& axes) const {
    double count = 1;
    for (const int axis : axes) count *= extents_[static_cast<size_t>(axis)];
    return count;
  }

  /// Arithmetic of indices that differ by lane: of 64 bits, so two registers of them for each of elements. Without
  /// lanes (axis -1) that of every element.
  double index_work(const IndexMap& map, int axis) const {
    double cost = 0;
    for (const IndexExpr& index : map.dims)
      if (index.dynamic && (axis < 0 || depends(stage_, index, axis)))
        index.dynamic.visit([&](const Expr& e) { cost += (axis < 0 ? 1 : 2) * cost_of_op(e, costs_); });
    return cost;
  }

  double access(const IndexMap& map, const Shape& shape, int axis) const {
    switch (walks_.of(map, shape, axis)) {
      case Walk::same:
      case Walk::next:
        return costs_.access;
      case Walk::second:
        return costs_.second;
      case Walk::far:
      case Walk::strided:
        return walks_.turns(map, shape, axis) ? costs_.turned : apart(walks_.of(map, shape, axis));
      case Walk::single:
        return apart(Walk::single);
    }
    return 0;
  }

  /// Lanes one by one. Where few are in one line, rows wait for as many lines; maps turn them or read them once. With
  /// blocks guessed, who knows which of the axes is blocked.
  double apart(Walk walk) const {
    if (stage_.anchor == Anchor::window && walk != Walk::single) return kGatheredTap * costs_.element * lanes_;
    const bool lines = walk == Walk::far && guess_ == LayoutGuess::dense && !stage_.reductions.empty();
    return (lines ? costs_.far : costs_.element) * lanes_;
  }

  /// What is the same for all points of a row, such as the quotient of a mean, is computed once.
  bool outside_of_loop(const Expr& e) const {
    if (stage_.reductions.empty() || e.args().empty()) return false;
    const auto [at, fresh] = outside_.try_emplace(e.node());
    if (fresh) {
      const std::set<int> axes = axes_of(stage_, e);
      at->second = std::includes(rows_.begin(), rows_.end(), axes.begin(), axes.end());
    }
    return at->second;
  }

  /// A function that a reduction over the row has computed (softmax's exp): it rests where the result will lie
  /// (cpu/emit/generic/resting_row.hpp).
  bool rests(const Expr& e) const {
    if (!is_function(e.op()) || stage_.anchor != Anchor::row) return false;
    return std::any_of(stage_.reductions.begin(), stage_.reductions.end(), [&](const Reduction& r) {
      bool same = false;
      r.value.visit([&](const Expr& x) { same |= x.op() == e.op() && x.args()[0].op() == e.args()[0].op(); });
      return same;
    });
  }

  /// Times: of short rows, whose functions wait for one another's last vector.
  double tail_of_row(int axis) const {
    if (stage_.anchor != Anchor::row || axis < 0 || rows_.contains(axis)) return 1;
    const double vectors = std::ceil(extents_[static_cast<size_t>(axis)] / lanes_);
    return vectors > 0 ? 1 + kRowTail / vectors : 1;
  }

  /// What results need of their row alone, lanes along `axis`: vectors of rows, or rows one by one.
  double once_a_row(int axis) const {
    double each = 0;
    std::unordered_set<const ExprNode*> seen;
    for (const StageOutput& o : stage_.outputs)
      for (const auto& [e, number] : nodes(o.value))
        if (outside_of_loop(*e) && seen.insert(e->node()).second) each += cost_of(*e);
    return each * vectors(rows_, axis);
  }

  /// Borders of windows are loops of their own.
  bool is_border(const Expr& e) const {
    return stage_.anchor == Anchor::window && e.op() == ExprOp::select && e.args()[0].op() == ExprOp::in_bounds;
  }

  /// A choice between operands that is made once for a piece of the axis (kernel/choice_pieces.hpp).
  bool cut(const Expr& e, int axis) const {
    if (!cut_ || stage_.anchor == Anchor::window || !chooses_along(region_, stage_, e, cut_->axis)) return false;
    const auto lanes = static_cast<int64_t>(lanes_);
    return axis != cut_->axis ||
           std::all_of(cut_->ends.begin(), cut_->ends.end() - 1, [&](int64_t at) { return at % lanes == 0; });
  }

  /// One arm alone is computed: of a piece, or where all lanes choose alike and an arm has functions (emit_select.cpp).
  bool jumps(const Expr& e, int axis) const {
    if (cut(e, axis)) return true;
    if (e.op() != ExprOp::select || e.args()[0].op() != ExprOp::in_bounds || stage_.anchor == Anchor::window)
      return false;
    const Read& read = stage_.reads[static_cast<size_t>(e.args()[0].index())];
    const Shape shape = shape_read_by(region_, read);
    for (size_t d = 0; d < read.map.dims.size(); ++d)
      if (depends(stage_, read.map.dims[d], axis) && !always_inside(read.map.dims[d], shape[d], axis_extents(stage_)))
        return false;
    return calls_function(e.args()[1]) || calls_function(e.args()[2]);
  }

  /// Of the points of its axes, those whose coordinate is inside.
  double share_inside(const IndexExpr& index, const Dim& size) const {
    const std::vector<Dim> extents = axis_extents(stage_);
    if (always_inside(index, size, extents)) return 1;
    const CoordinateRange range = coordinate_range(index, extents);
    if (!range.low || !range.high || *range.high < *range.low) return 1;
    return std::min(1.0, extent_of(size) / static_cast<double>(*range.high - *range.low + 1));
  }

  double share_inside(const Expr& guard) const {
    const Read& read = stage_.reads[static_cast<size_t>(guard.index())];
    const Shape shape = shape_read_by(region_, read);
    double share = 1;
    for (size_t d = 0; d < read.map.dims.size(); ++d) share *= share_inside(read.map.dims[d], shape[d]);
    return share;
  }

  /// Of all points, those at which a node of the value is computed, by its number; nothing where that is all of them.
  std::vector<double> shares(const Expr& value, int axis) const {
    if (!holds(value, ExprOp::in_bounds)) return {};
    const std::vector<Numbered>& all = nodes(value);
    std::vector<std::optional<bool>>& known = jumps_[axis];
    known.resize(numbers_.size());
    for (const auto& [e, number] : all)
      if (!known[number]) known[number] = jumps(*e, axis);
    if (std::none_of(all.begin(), all.end(), [&](const Numbered& n) { return *known[n.number]; })) return {};
    std::vector<double> share(numbers_.size());
    const auto add = [&](const Expr& e, double of) {
      double& most = share[numbers_.at(e.node())];
      most = std::max(most, of);
    };
    add(value, 1);
    for (size_t i = all.size(); i-- > 0;) {
      const Expr& e = *all[i].e;
      const double of = share[all[i].number];
      const bool one_arm = *known[all[i].number];
      const double first = one_arm ? std::min(of, share_inside(e.args()[0])) : of;
      for (size_t arg = 0; arg < e.args().size(); ++arg)
        add(e.args()[arg], !one_arm || arg == 0 ? of : arg == 1 ? first : of - first);
    }
    return share;
  }

  /// Loaded once for all points that a reduction runs over.
  bool is_of_row(const IndexMap& map) const {
    for (const IndexExpr& e : map.dims)
      for (int axis = domain_; axis < static_cast<int>(extents_.size()); ++axis)
        if (depends(stage_, e, axis)) return false;
    return true;
  }

  /// Loaded lane by lane, since no instruction loads so few bytes of some lanes alone.
  bool asks_each_lane(int read) const {
    const Read& r = stage_.reads[static_cast<size_t>(read)];
    return r.stage < 0 && !masks_bytes_ && !cut_ && stage_.anchor != Anchor::window && guarded_.contains(read) &&
           byte_size(region_.params[static_cast<size_t>(r.index)].type.dtype) < 4;
  }

  double access(int index, int axis) const {
    const Read& read = stage_.reads[static_cast<size_t>(index)];
    const double each = access(read.map, shape_read_by(region_, read), axis);
    return asks_each_lane(index) ? std::max(each, apart(Walk::single)) : each;
  }

  /// A guard is a mask that the loop makes, whatever a selection of values costs.
  double cost_of(const Expr& e) const {
    const bool guard = e.op() == ExprOp::select && e.args()[0].op() == ExprOp::in_bounds;
    return guard ? costs_.point : cost_of_op(e, costs_);
  }

  NodeCost node_cost(const Expr& e, int axis, bool reduced) const {
    NodeCost cost;
    const double functions = reduced ? costs_.in_row : tail_of_row(axis);
    if (!is_border(e) && !outside_of_loop(e))
      cost.work = !reduced && rests(e) ? costs_.access : (is_function(e.op()) ? functions : 1) * cost_of(e);
    if (e.op() != ExprOp::read) return cost;
    const Read& read = stage_.reads[static_cast<size_t>(e.index())];
    if (reduced && is_of_row(read.map)) return cost;
    cost.load = axis < 0 ? costs_.access : access(e.index(), axis);
    cost.index = index_work(read.map, axis);
    return cost;
  }

  /// Cycles of one vector of a value, lanes along `axis` (-1: one element at a time). Taps of a window are a block of
  /// code without loops: their loads overlap with what is computed of them. `again`: what rests is read.
  double vector_cost(const Expr& value, int axis, bool reduced, bool again) const {
    double work = costs_.point, loads = 0;
    const auto share = shares(value, axis);
    const std::vector<Numbered>& all = nodes(value);
    std::vector<std::optional<NodeCost>>& known = known_[{axis, reduced}];
    known.resize(numbers_.size());
    const auto add = [&](const Expr& e, size_t number) {
      std::optional<NodeCost>& cost = known[number];
      if (!cost) cost = node_cost(e, axis, reduced);
      const double of = share.empty() ? 1 : share[number];
      work += of * (cost->work + cost->index);
      loads += of * cost->load;
    };
    if (!again)
      for (const auto& [e, number] : all) add(*e, number);
    else
      for (const Expr* e : rested_.nodes_over(value))
        if (rested_.is(*e))
          loads += costs_.access;
        else
          add(*e, numbers_.at(e->node()));
    if (reduced && stage_.anchor == Anchor::window) return std::max(work, loads) + loss_ * std::min(work, loads);
    return work + loads;
  }

  double vectors(const std::set<int>& axes, int axis) const {
    if (axis < 0 || !axes.contains(axis)) return points(axes);
    const double along = extents_[static_cast<size_t>(axis)];
    return along > 0 ? points(axes) / along * std::ceil(along / lanes_) : 0;
  }

  std::set<int> reduced_axes(const Reduction& reduction) const {
    std::set<int> axes = axes_of(stage_, reduction.value);
    for (int axis = domain_; axis < static_cast<int>(extents_.size()); ++axis) axes.insert(axis);
    return axes;
  }

  /// `rests`: lanes are within rows, and what the first pass stores is not computed again.
  double reductions(int axis, bool rests = false) const {
    double total = 0;
    for (size_t i = 0; i < stage_.reductions.size(); ++i) {
      const Reduction& r = stage_.reductions[i];
      const double stored = rests && i == rested_.reduction() ? costs_.access : 0;
      const bool again = rests && i > rested_.reduction();
      total += vectors(reduced_axes(r), axis) * (vector_cost(r.value, axis, true, again) + stored);
    }
    return total;
  }

  double outputs(int axis, bool rests = false) const {
    std::set<int> all;
    for (int i = 0; i < domain_; ++i) all.insert(i);
    double total = 0;
    std::vector<Expr> computed;
    for (const StageOutput& o : stage_.outputs) {
      if (rests && rested_.is_of(o)) continue;
      const bool known = std::find(computed.begin(), computed.end(), o.value) != computed.end();
      double each = known ? 0 : vector_cost(o.value, axis, false, rests);
      if (axis >= 0) {
        const Walk walk = walks_.of(o.map, o.shape, axis);
        if (walk == Walk::same) return std::numeric_limits<double>::infinity();
        each += walk == Walk::next ? costs_.access : walks_.turns(o.map, o.shape, axis) ? costs_.turned : apart(walk);
      }
      computed.push_back(o.value);
      total += vectors(all, axis) * each;
    }
    return total;
  }

  double best_outputs(const std::set<int>& without, bool rests = false) const {
    double best = outputs(-1, rests);
    for (int axis = 0; axis < domain_; ++axis)
      if (!without.contains(axis)) best = std::min(best, outputs(axis, rests));
    return best;
  }

  bool stores_neighbours(int axis) const {
    return std::all_of(stage_.outputs.begin(), stage_.outputs.end(),
                       [&](const StageOutput& o) { return walks_.of(o.map, o.shape, axis) == Walk::next; });
  }

  double nest() const {
    if (stage_.reductions.empty()) return best_outputs({});
    const std::set<int>& rows = rows_;
    double best = std::numeric_limits<double>::infinity();
    const bool window = stage_.anchor == Anchor::window;
    for (const int axis : rows)  // a row per lane; of windows, where results are neighbours
      if (!window || stores_neighbours(axis))
        best = std::min(best, reductions(axis) + once_a_row(axis) + outputs(axis));
    const bool rests = rested_.found();
    const int reduced = window ? domain_ : static_cast<int>(extents_.size());  // no lanes of taps
    for (int axis = domain_; axis < reduced; ++axis)                           // lanes within a row
      best = std::min(best,
                      reductions(axis, rests) + best_outputs(rows, rests) + costs_.row * points(rows) + once_a_row(-1));
    if (window && best < std::numeric_limits<double>::infinity()) return best;
    return std::min(best, reductions(-1) + once_a_row(-1) + best_outputs({}));  // element by element
  }

  /// Lanes of a matrix product are columns, wherever they are stored; those of images lie as layouts have it.
  double tile_outputs() const {
    for (const Read& read : stage_.reads) {
      const bool weights = read.stage < 0 && read.map.dims.size() == 2 &&
                           region_.params[static_cast<size_t>(read.index)].role == ParamRole::constant;
      if (!weights) continue;
      const std::set<int> axes = axes_of(read.map);
      const bool summed = std::any_of(axes.begin(), axes.end(), [&](int a) { return a >= domain_; });
      if (summed && axes.size() == 2 && *axes.begin() < domain_) return outputs(*axes.begin());
    }
    return best_outputs({});
  }

  /// Multiply-adds of register tiles; what stands in front of the data once per tile of channels, for each element.
  double contraction(const TargetInfo& target) const {
    double total = tile_outputs();
    const double units = static_cast<double>(std::max<int64_t>(target.fma_units, 1));
    for (const Reduction& r : stage_.reductions) {
      const std::set<int> axes = reduced_axes(r);
      double prologue = -costs_.simple;  // of the product itself
      double channels = 1;
      std::vector<Read> data;
      r.value.visit([&](const Expr& e) {
        prologue += cost_of_op(e, costs_);
        if (e.op() == ExprOp::read) {
          const Read& read = stage_.reads[static_cast<size_t>(e.index())];
          const bool weights =
              read.stage < 0 && region_.params[static_cast<size_t>(read.index)].role == ParamRole::constant;
          if (!weights)
            data.push_back(read);
          else if (points(axes_of(read.map)) > 1)
            for (const int axis : axes_of(read.map))
              if (axis < domain_) channels = std::max(channels, extents_[static_cast<size_t>(axis)]);
        }
      });
      total += points(axes) / lanes_ / units;
      for (const Read& read : data) prologue += turned_data(read);  // also where nothing is computed
      // a guard of taps outside is not work of its own
      prologue = std::max(0.0, prologue - guards(r.value));
      const double by_pixels = points(axes) / lanes_;
      const double by_channels = points(axes) / channels * std::ceil(channels / (lanes_ * costs_.tile_vectors));
      total += prologue * std::min(by_pixels, by_channels) * (prologue > 0 ? 1 : 0);
    }
    return total;
  }

  /// Data of images of which neither neighbouring pixels nor channels share a line: each element comes by itself.
  double turned_data(const Read& read) const {
    const Shape shape = shape_read_by(region_, read);
    const auto shares_lines = [&](int axis) {
      if (extents_[static_cast<size_t>(axis)] < LaneWalks::kShortestTurned) return false;  // taps
      const Walk walk = walks_.of(read.map, shape, axis);
      return walk == Walk::next || walk == Walk::second;
    };
    bool of_pixels = false;
    for (const IndexTerm& pixel : stage_.outputs[0].map.dims.back().terms) {
      of_pixels |= walks_.of(read.map, shape, pixel.axis) != Walk::same;
      if (shares_lines(pixel.axis)) return 0;
    }
    for (int axis = domain_; axis < static_cast<int>(extents_.size()); ++axis)
      if (shares_lines(axis)) return 0;
    return of_pixels ? costs_.element : 0;
  }

  double guards(const Expr& value) const {
    double count = 0;
    value.visit([&](const Expr& e) { count += e.op() == ExprOp::select ? costs_.simple : 0; });
    return std::min(count, costs_.simple);
  }
};

/// A product that no skeleton of tiles sees, such as one padded by another number than 0, is a plain nest.
bool has_tiles(const Region& region, const TargetInfo& target) {
  if (!is_single_stage(region) || region.stages[0].anchor != Anchor::contraction) return true;
  const Skeleton* first = first_to_see(skeletons(), region, target);
  return first == nullptr || first->see != generic_skeleton().see;
}

}  // namespace

bool lies_in_blocks(const Region& region) {
  const auto is_blocked = [](const auto& value) { return may_be_blocked(value.shape); };
  return std::any_of(region.params.begin(), region.params.end(), [&](const Param& p) { return is_blocked(p.type); }) ||
         std::any_of(region.stages.begin(), region.stages.end(), [&](const Stage& stage) {
           return !stage.reductions.empty() || std::any_of(stage.outputs.begin(), stage.outputs.end(), is_blocked);
         });
}

double rate_of(double bytes, const TargetInfo& target) {
  const auto fits = [&](int64_t level) { return bytes <= target.shares.group * static_cast<double>(level); };
  const MachineRates& rates = target.rates;
  return fits(target.l2_bytes) ? rates.maps : fits(target.l3_bytes) ? rates.l3_data : rates.memory;
}

GroupCost group_cost(const Region& region, const TargetInfo& target, LayoutGuess guess) {
  SymbolValues ones;
  for (const std::string& symbol : region.symbols()) ones[symbol] = 1;
  GroupCost cost;
  const RegionCost traffic = traffic_of(region, ones);
  cost.bytes = traffic.bytes_read + traffic.bytes_written;
  const bool tiled = has_tiles(region, target);
  std::vector<double> works;
  for (const Stage& stage : region.stages) works.push_back(StageCost(region, stage, target, guess).work(target, tiled));
  for (const double work : works) cost.work += work;
  const double rate = rate_of(cost.bytes, target);
  const double read = target.costs.read_share;
  const bool cached = cost.bytes <= target.shares.group * static_cast<double>(target.l3_bytes);
  const double moved = cached ? read * traffic.bytes_read + (2 - read) * traffic.bytes_written : cost.bytes;
  cost.memory = rate > 0 ? moved / rate : 0;
  double time = overlapped(cost.work, cost.memory, target);
  if (resembles_product_rows(region)) time += product_rows_lost(region, {works[0], works[1], time}, target);
  cost.cycles = target.launch.cycles + time;
  return cost;
}

double microseconds(double cycles, const TargetInfo& target) {
  const double hertz =
      target.launch.multiply_adds_per_second / static_cast<double>(std::max<int64_t>(target.fma_units, 1));
  return hertz > 0 ? 1e6 * cycles / hertz : 0;
}

}  // namespace opfuse
