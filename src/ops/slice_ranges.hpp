// The ranges of a slice as constants say them, opset 9's attributes and opset 10's operands alike.
#pragma once

#include <map>
#include <optional>

#include "ir/graph.hpp"

namespace opfuse {

/// Positions as given, not clamped (slice_axis in ops/slice.hpp does that).
struct SliceRange {
  int64_t start = 0, end = 0, step = 1;
};
using SliceRanges = std::map<size_t, SliceRange>;  ///< by axis, counted from the front

/// Empty where a position is computed or x has an open rank.
std::optional<SliceRanges> slice_ranges(const Node& slice);

}  // namespace opfuse
