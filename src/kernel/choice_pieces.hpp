// Choices between operands that all points of a part of an axis make alike: the parts of a concatenation.
//
//   y[c] = c < 16 ? f(x[c]) : g(z[c - 16])      ->      y[0:16] = f(x), y[16:32] = g(z)
//
// Each part is a stage of its own, without the choice: nothing is guarded, and lanes take what is next in memory.
#pragma once

#include <optional>
#include <vector>

#include "region/region.hpp"

namespace opfuse {

/// Where a domain axis is cut: 0, the boundaries, the extent.
struct ChoiceCut {
  int axis = -1;
  std::vector<int64_t> ends;
  size_t pieces() const { return ends.size() - 1; }
};

/// The axis along which most choices between reads change; nothing where there is none, or more than `most` parts.
/// Never along a row: each piece would do the sums again, behind the first over operands whose place the result has.
std::optional<ChoiceCut> cut_of_choices(const Region& region, const Stage& stage, size_t most = 8);

/// The points in [low, high) of an axis as a stage, whose coordinate begins at 0; what is chosen there is known.
/// Nothing where a coordinate divides the axis otherwise.
std::optional<Stage> piece_of(const Region& region, const Stage& stage, int axis, int64_t low, int64_t high);

/// Whether the choice e, a select, is made by where a point stands along `axis` alone.
bool chooses_along(const Region& region, const Stage& stage, const Expr& e, int axis);

}  // namespace opfuse
