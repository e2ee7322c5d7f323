// What the skeleton of the copy engine and its emitter agree upon.
#pragma once

#include "cuda/schedules.hpp"

namespace opfuse::cuda {

/// Columns of sums that a warp's staging rows hold, and what keeps their banks apart.
inline constexpr int64_t kTmaPart = 32, kTmaPad = 4;

/// Shared memory of a block.
int64_t tma_shared_bytes(const TmaSchedule& schedule);

}  // namespace opfuse::cuda
