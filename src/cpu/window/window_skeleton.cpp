// Pooling and depthwise convolutions as a skeleton, and the means of their results, which have no other.
#include "cpu/contraction/direct_cost.hpp"
#include "cpu/schedule_parts.hpp"
#include "cpu/schedules.hpp"
#include "cpu/skeletons.hpp"
#include "cpu/window/mean_view.hpp"

namespace opfuse {
namespace {

bool is_window(const Region& region) { return std::holds_alternative<WindowView>(view_window(region, 0)); }
bool has_means(const Region& region) { return region.stages.size() == 2 && view_means(region).has_value(); }

bool see(const Region& region, const TargetInfo&) {
  return has_means(region) || (is_single(region) && is_window(region));
}

std::optional<std::string> refuses(const Region& region, const TargetInfo&) {
  if (!has_means(region)) return std::nullopt;
  if (auto why = refuse_sequence(region)) return why;
  if (region.stages[0].anchor != Anchor::window) return "means are summed by depthwise convolutions and pooling";
  const auto found = view_window(region, 0);
  const auto* why = std::get_if<std::string>(&found);
  return why ? std::optional("a map whose means are wanted: " + *why) : std::nullopt;
}

void wish(const Region& region, const TargetInfo& target, LayoutWish& wish) { wish_windows(region, 0, target, wish); }

std::vector<Candidate> schedules(const Region& region, const std::vector<ParamLayout>& layouts,
                                 const TargetInfo& target, size_t most) {
  return erased("window", schedule_window(region, layouts, 0, target, most));
}

double cost(const Region& region, const Schedule& schedule, const TargetInfo& target) {
  const Stage& stage = region.stages[0];
  if (std::holds_alternative<ContractionView>(view_contraction(region, 0)))
    return tiled_cycles(region, schedule, target);
  const auto products =
      static_cast<double>(work_of(stage)) / static_cast<double>(stage.domain[0].constant().value_or(1));
  return products / static_cast<double>(2 * target.lanes_f32());
}

}  // namespace

Skeleton window_skeleton() {
  return {.name = "window",
          .form = kCollapsed,
          .see = see,
          .refuses = refuses,
          .wish = wish,
          .candidates = schedules,
          .verify = verify_as<WindowSchedule>,
          .cost = cost};
}

}  // namespace opfuse
