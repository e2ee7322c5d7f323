// Winograd convolutions whose weights are laid out for one: their schedule and what it costs.
#pragma once

#include "cpu/winograd/winograd_cost.hpp"
#include "cpu/winograd/winograd_schedule.hpp"
#include "kernel/spec.hpp"

namespace opfuse {

struct WinogradPlan {
  WinogradSchedule schedule;
  WinogradWork work;
  WinogradChoice choice;
};
/// The `most` fastest; none where the layouts of the weights, or of other operands, are not those of Winograd.
/// `threads`: of the runs, 0 when unknown.
std::vector<Ranked<WinogradPlan>> plan_winograd(const Region& region, const std::vector<ParamLayout>& layouts,
                                                const TargetInfo& target, int64_t threads, size_t most);

}  // namespace opfuse
