// Schedules of the register-tiled skeletons: the `most` fastest, by predicted time; none where the stage or its layouts
// are not theirs. Cycles are comparable within one list only.
#pragma once

#include "cpu/attention/attention_schedule.hpp"
#include "cpu/contraction/contraction_schedule.hpp"
#include "cpu/pixels/pixel_schedule.hpp"
#include "cpu/product_rows/product_rows_schedule.hpp"
#include "cpu/window/chain_schedule.hpp"
#include "cpu/window/window_schedule.hpp"
#include "kernel/fastest.hpp"
#include "kernel/spec.hpp"
#include "kernel/views.hpp"

namespace opfuse {

std::vector<Ranked<ContractionSchedule>> schedule_contraction(const Region& region,
                                                              const std::vector<ParamLayout>& layouts, int index,
                                                              const TargetInfo& target, size_t most);
std::vector<Ranked<WindowSchedule>> schedule_window(const Region& region, const std::vector<ParamLayout>& layouts,
                                                    int index, const TargetInfo& target, size_t most);

/// Scores, softmax and the product with the values in one kernel; any layouts.
std::vector<Ranked<AttentionSchedule>> schedule_attention(const Region& region, const TargetInfo& target, size_t most);

/// A product and the reduction of its rows in one kernel; none where results are not dense.
std::vector<Ranked<ProductRowsSchedule>> schedule_product_rows(const Region& region,
                                                               const std::vector<ParamLayout>& layouts,
                                                               const TargetInfo& target, size_t most);

/// A convolution and a window in one kernel.
std::vector<Ranked<ChainSchedule>> schedule_chain(const Region& region, const std::vector<ParamLayout>& layouts,
                                                  const TargetInfo& target, size_t most);

/// Lanes of pixels: the region is as lowered, no axis dropped or merged.
std::vector<Ranked<PixelSchedule>> schedule_pixels(const Region& region, const std::vector<ParamLayout>& layouts,
                                                   const TargetInfo& target, size_t most);

/// What the layouts of a contraction's operands do not leave to choice: why a schedule does not fit them.
std::optional<std::string> misfit(const ContractionSchedule& schedule, const Region& region,
                                  const std::vector<ParamLayout>& layouts, const TargetInfo& target);

/// Rows that one register tile may hold, 1 when rows go one by one.
int64_t stackable_rows(const Region& region, const ContractionView& view);

/// Lanes of pixels are faster than lanes of channels; the weights stay as they are (dense).
bool pixels_pay(const Region& region, const TargetInfo& target);
/// The same where results are dense and layouts known: rows of pixels are stored whole, lanes of channels one by one.
bool pixels_pay_for_dense(const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo& target);

/// Cycles of that form per image; infinite where it does not fit.
double pixel_lane_cycles(const Region& region, const TargetInfo& target);

/// Blocks of `block` input channels stay inside groups.
bool divides_group(const Stage& stage, const ContractionView& view, int64_t block);

}  // namespace opfuse
