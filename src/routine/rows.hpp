// The routines, one per operator; declared here for the table in routine.cpp.
#pragma once

#include "routine/routine.hpp"

namespace opfuse {

using Settings = std::span<const int64_t>;

RoutineResult non_zero_routine(Settings settings, RoutineOperands operands);
RoutineResult non_max_suppression_routine(Settings settings, RoutineOperands operands);  ///< {boxes are by centre}
RoutineResult choose_routine(Settings settings, RoutineOperands operands);               ///< {axes of other sizes}
RoutineResult compress_routine(Settings settings, RoutineOperands operands);  ///< {axis}; {}: of all elements
RoutineResult unique_routine(Settings settings, RoutineOperands operands);    ///< {sorted, axis}; {sorted}: of elements
RoutineResult read_sizes_routine(Settings settings, RoutineOperands operands);

/// Sizes before, along and behind an axis.
struct AxisSizes {
  int64_t outer = 1, along = 1, inner = 1;
  AxisSizes(const std::vector<int64_t>& sizes, int64_t axis);
};
/// Slices of `x` along an axis, in that order; `axis` none: elements of the flat tensor.
Tensor picked(const Tensor& x, std::span<const int64_t> axis, const std::vector<int64_t>& places);

}  // namespace opfuse
