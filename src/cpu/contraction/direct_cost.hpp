// What a direct convolution costs with its schedule: what other algorithms are compared with.
#pragma once

#include "kernel/spec.hpp"

namespace opfuse {

/// Cycles of a launch whose weights come from memory. `region`: a convolution as it was lowered; a symbolic extent
/// counts as 1.
double direct_cycles(const Region& region, const Schedule& schedule, int64_t weight_bytes, const TargetInfo& target,
                     int64_t threads);

/// Of those, the multiply-adds of one image in register tiles of the schedule's size.
double tiled_cycles(const Region& region, const Schedule& schedule, const TargetInfo& target);

}  // namespace opfuse
