// How the rows skeleton divides a row among threads.
#pragma once

#include "cuda/schedules.hpp"
#include "kernel/spec.hpp"

namespace opfuse::cuda {

/// The schedule of a region, simplified as the skeleton sees it, that is not a product of tiles.
void choose_rows(const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo& target,
                 RowsSchedule& s);

/// Product of the axes' extents, with a small number for open ones.
int64_t typical_product(const Stage& stage, const std::vector<int>& axes);

}  // namespace opfuse::cuda
