// Schedules of the register-tiled skeletons; false: the stage or its layouts are not theirs.
#pragma once

#include "codegen/codegen.hpp"
#include "codegen/views.hpp"

namespace opfuse {

bool schedule_contraction(const Region& region, const std::vector<ParamLayout>& layouts, int index,
                          const TargetInfo& target, Schedule& s);
bool schedule_window(const Region& region, const std::vector<ParamLayout>& layouts, int index, const TargetInfo& target,
                     Schedule& s);

/// Blocks of `block` input channels stay inside groups.
bool divides_group(const Stage& stage, const ContractionView& view, int64_t block);

}  // namespace opfuse
