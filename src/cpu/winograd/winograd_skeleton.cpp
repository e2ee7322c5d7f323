// Winograd as a skeleton: it wishes nothing; who wants it transforms the weights (cpu/algorithms.hpp).
#include "cpu/skeletons.hpp"
#include "cpu/winograd/schedule_winograd.hpp"

namespace opfuse {
namespace {

bool see(const Region& region, const TargetInfo&) {
  return is_single(region) && std::holds_alternative<WinogradView>(view_winograd(region, 0));
}

std::vector<Schedule> candidates(const Region& region, const std::vector<ParamLayout>& layouts,
                                 const TargetInfo& target) {
  const auto plan = plan_winograd(region, layouts, target, 0);
  if (!plan) return {};
  return {plan->schedule};
}

}  // namespace

Skeleton winograd_skeleton() {
  return {.name = kWinogradName, .form = kCollapsed, .see = see, .candidates = candidates};
}

}  // namespace opfuse
