// What kernels fed by the copy engine say alike: the barriers of a ring of stages, sums that leave through staging
// rows.
#pragma once

#include <functional>
#include <string>

#include "cuda/kernel.hpp"

namespace opfuse::cuda {

/// Before the roles part: full[s], empty[s] begin their first phase. `full`: arrivals that make a stage full; `more`
/// are lines that begin others.
void begin_barriers(Kernel& k, const std::string& full, const std::string& more = "");
/// stage and phase of the next step.
void next_stage(Kernel& k);
/// The sums of a warp, `sum` of a lane, kPart columns at a time: `store` puts (row, column) of a part to memory.
void store_parts(Kernel& k, const std::string& columns, const std::function<void()>& store);

}  // namespace opfuse::cuda
