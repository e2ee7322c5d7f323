// Winograd as a skeleton: it wishes nothing; who wants it transforms the weights (cpu/algorithms.hpp).
#include <fmt/format.h>

#include "cpu/skeletons.hpp"
#include "cpu/winograd/schedule_winograd.hpp"

namespace opfuse {
namespace {

bool see(const Region& region, const TargetInfo&) {
  return is_single(region) && std::holds_alternative<WinogradView>(view_winograd(region, 0));
}

std::vector<Candidate> schedules(const Region& region, const std::vector<ParamLayout>& layouts,
                                 const TargetInfo& target, size_t most) {
  std::vector<Candidate> found;
  for (const auto& [cycles, plan] : plan_winograd(region, layouts, target, 0, most))
    found.push_back({cycles, erased(kWinogradName, plan.schedule)});
  return found;
}

/// The layout of the weights says which tiles they were transformed for, and how many vectors lie together.
std::optional<std::string> check(const Schedule& schedule, const Region& region,
                                 const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  if (auto why = verify_fields<WinogradSchedule>(schedule)) return why;
  const auto s = typed<WinogradSchedule>(schedule);
  const auto found = view_winograd(region, 0);
  const auto* view = std::get_if<WinogradView>(&found);
  if (!view) return std::get<std::string>(found);
  const int weights = region.stages[0].reads[static_cast<size_t>(view->contraction.weights)].index;
  const Layout& layout = layouts[static_cast<size_t>(weights)].layout;
  if (layout.tile_h != s.winograd_h) return fmt::format("winograd_h={} of weights for {}", s.winograd_h, layout.tile_h);
  if (layout.tile_w != s.winograd_w) return fmt::format("winograd_w={} of weights for {}", s.winograd_w, layout.tile_w);
  const int64_t vectors = layout.block_of(0) / target.lanes_f32();
  if (vectors != s.nv) return fmt::format("nv={} of weights in blocks of {} vectors", s.nv, vectors);
  return std::nullopt;
}

}  // namespace

Skeleton winograd_skeleton() {
  return {.name = kWinogradName, .form = kCollapsed, .see = see, .candidates = schedules, .verify = check};
}

}  // namespace opfuse
