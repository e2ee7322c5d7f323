// Winograd convolutions whose weights are laid out for one: their schedule and what it costs.
#pragma once

#include "cpu/winograd/winograd_cost.hpp"
#include "kernel/spec.hpp"

namespace opfuse {

struct WinogradSchedule {
  Schedule schedule;
  WinogradWork work;
  WinogradChoice choice;
};
/// nullopt: the layouts of the weights, or of other operands, are not those of Winograd. `threads`: of the runs, 0
/// when unknown.
std::optional<WinogradSchedule> plan_winograd(const Region& region, const std::vector<ParamLayout>& layouts,
                                              const TargetInfo& target, int64_t threads);

}  // namespace opfuse
