// Schedules of the register-tiled skeletons; false: the stage or its layouts are not theirs.
#pragma once

#include "codegen/codegen.hpp"
#include "codegen/views.hpp"

namespace opfuse {

bool schedule_contraction(const Region& region, const std::vector<ParamLayout>& layouts, int index,
                          const TargetInfo& target, Schedule& s);
bool schedule_window(const Region& region, const std::vector<ParamLayout>& layouts, int index, const TargetInfo& target,
                     Schedule& s);

/// Rows that one register tile may hold, 1 when rows go one by one.
int64_t stackable_rows(const Region& region, const ContractionView& view);

/// Blocks of `block` input channels stay inside groups.
bool divides_group(const Stage& stage, const ContractionView& view, int64_t block);

}  // namespace opfuse
