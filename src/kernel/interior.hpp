// Borders of padded windows are a few rows and lanes. Between them no guard needs to be asked, and how many taps of a
// window lie inside is known:
//
//     | border | interior: whatever the other axes are, each guarded read is inside | border |
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "region/region.hpp"

namespace opfuse {

/// Coordinates of an axis from low to high, both included.
struct AxisRange {
  int64_t low = 0, high = 0;
};

/// The coordinates of a domain axis at which guarded reads are inside along all dimensions that the axis moves them
/// along, whatever the other axes are. Nothing where no guard asks for the axis, sizes are open, or there are none.
std::optional<AxisRange> interior_of(const Region& region, const Stage& stage, int axis);

/// What is known of whole numbers computed from coordinates in these ranges (by axis).
class KnownNumbers {
 public:
  explicit KnownNumbers(std::vector<std::optional<AxisRange>> axes) : axes_(std::move(axes)) {}
  /// The value, where it is the same at all of these coordinates. The expression must outlive this.
  std::optional<int64_t> value(const Expr& e);

 private:
  std::vector<std::optional<AxisRange>> axes_;
  std::map<const ExprNode*, std::optional<AxisRange>> memo_;
  std::optional<AxisRange> range(const Expr& e);
  std::optional<AxisRange> computed(const Expr& e);
};

}  // namespace opfuse
