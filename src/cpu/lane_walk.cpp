#include "cpu/lane_walk.hpp"

#include <algorithm>
#include <cmath>

#include "region/dependence.hpp"

namespace opfuse {

constexpr double kFloatBytes = 4;

double extent_of(const Dim& d) { return static_cast<double>(std::max<int64_t>(d.constant().value_or(1), 0)); }

bool may_be_blocked(const Shape& shape) { return shape.rank() == 4 && extent_of(shape[1]) > 1; }

bool depends(const Stage& stage, const IndexExpr& index, int axis) {
  if (index.dynamic) return axes_of(stage, index.dynamic).contains(axis);
  return std::any_of(index.terms.begin(), index.terms.end(), [&](const IndexTerm& t) { return t.axis == axis; });
}

LaneWalks::LaneWalks(const Stage& stage, const TargetInfo& target, LayoutGuess guess)
    : stage_(stage),
      lanes_(static_cast<double>(target.lanes_f32())),
      line_(static_cast<double>(target.line_bytes)),
      guess_(guess) {}

bool LaneWalks::has_blocks(const Shape& shape) const {
  return guess_ == LayoutGuess::channel_blocks && may_be_blocked(shape);
}

/// Elements from an index to the next along a dimension.
double LaneWalks::stride_of(const Shape& shape, size_t dim) const {
  double stride = 1;
  for (size_t i = dim + 1; i < shape.rank(); ++i) stride *= extent_of(shape[i]);
  if (!has_blocks(shape)) return stride;
  return dim == 1 ? 1 : dim > 1 ? stride * lanes_ : stride;
}

Walk LaneWalks::along(const IndexExpr& index, double stride, int axis) const {
  if (index.dynamic) return Walk::single;
  Walk walk = Walk::same;
  for (const IndexTerm& t : index.terms) {
    if (t.axis != axis) continue;
    if (walk != Walk::same || !t.coef.is_constant() || !t.div.is_constant() || !t.mod.is_constant())
      return Walk::single;
    const int64_t lanes = static_cast<int64_t>(lanes_);
    if (t.div.value() > 1 && t.div.value() % lanes == 0) continue;  // lanes share it
    const bool whole = t.mod.value() == 0 || t.mod.value() % lanes == 0;
    if (t.div.value() != 1 || !whole) return Walk::single;
    const double step = std::abs(static_cast<double>(t.coef.value())) * stride;
    walk = step == 1 && t.coef.value() == 1  ? Walk::next
           : step == 2 && t.coef.value() > 0 ? Walk::second
           : step * kFloatBytes >= line_ / 4 ? Walk::far
                                             : Walk::strided;
  }
  return walk;
}

Walk LaneWalks::of(const IndexMap& map, const Shape& shape, int axis) const {
  Walk walk = Walk::same;
  for (size_t d = 0; d < map.dims.size(); ++d) {
    if (!depends(stage_, map.dims[d], axis)) continue;
    if (walk != Walk::same) return Walk::single;
    walk = along(map.dims[d], stride_of(shape, d), axis);
    // blocks that do not begin where lanes do
    if (has_blocks(shape) && d == 1 && walk == Walk::next &&
        !(map.dims[d].offset.is_constant() && map.dims[d].offset.value() % static_cast<int64_t>(lanes_) == 0))
      return Walk::single;
  }
  return walk;
}

bool LaneWalks::turns(const IndexMap& map, const Shape& shape, int axis) const {
  const auto computed = [](const IndexExpr& index) { return static_cast<bool>(index.dynamic); };
  if (!stage_.reductions.empty() || std::any_of(map.dims.begin(), map.dims.end(), computed)) return false;
  for (int other = 0; other < static_cast<int>(stage_.domain.size()); ++other)
    if (other != axis && extent_of(stage_.domain[static_cast<size_t>(other)]) >= kShortestTurned &&
        of(map, shape, other) == Walk::next)
      return true;
  return false;
}

}  // namespace opfuse
