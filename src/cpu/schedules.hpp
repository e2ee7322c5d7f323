// Schedules of the register-tiled skeletons; false: the stage or its layouts are not theirs.
#pragma once

#include "kernel/spec.hpp"
#include "kernel/views.hpp"

namespace opfuse {

bool schedule_contraction(const Region& region, const std::vector<ParamLayout>& layouts, int index,
                          const TargetInfo& target, Schedule& s);
bool schedule_window(const Region& region, const std::vector<ParamLayout>& layouts, int index, const TargetInfo& target,
                     Schedule& s);

/// Scores, softmax and the product with the values in one kernel; any layouts.
bool schedule_attention(const Region& region, const TargetInfo& target, Schedule& s);

/// A convolution and a window in one kernel.
bool schedule_chain(const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo& target,
                    Schedule& s);

/// Rows that one register tile may hold, 1 when rows go one by one.
int64_t stackable_rows(const Region& region, const ContractionView& view);

/// Lanes of pixels: the region is as lowered, no axis dropped or merged.
bool schedule_pixels(const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo& target,
                     Schedule& s);
/// That form is faster than lanes of channels; its weights stay as they are (dense).
bool pixels_pay(const Region& region, const TargetInfo& target);

/// Cycles of that form per image; infinite where it does not fit.
double pixel_lane_cycles(const Region& region, const TargetInfo& target);

/// Blocks of `block` input channels stay inside groups.
bool divides_group(const Stage& stage, const ContractionView& view, int64_t block);

}  // namespace opfuse
