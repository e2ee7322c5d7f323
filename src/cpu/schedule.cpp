// The analytic schedule model: which skeleton, and its tile, layouts and parts.
#include "cpu/activation_form.hpp"
#include "cpu/schedules.hpp"
#include "cpu/window/mean_view.hpp"
#include "cpu/winograd/schedule_winograd.hpp"
#include "kernel/collapse.hpp"

namespace opfuse {
namespace {

Schedule plain_nest(const Region& region) {
  Schedule s;
  const Anchor anchor = region.stages.empty() ? Anchor::map : region.stages[0].anchor;
  if (anchor == Anchor::contraction || anchor == Anchor::window) s.set("generic", 1);
  return s;
}

Schedule choose_skeleton(const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  Schedule s;
  if (is_empty(region) || region.stages[0].anchor == Anchor::scatter) return plain_nest(region);
  const size_t stages = stages_without_means(region);
  if (stages == 3) {
    schedule_attention(region, target, s);
    return s;
  }
  if (stages == 2) {
    if (!schedule_chain(region, layouts, target, s)) return {};
    return s;
  }
  if (region.stages.size() == 2) {
    schedule_window(region, layouts, 0, target, s);
    return s;
  }
  const Collapsed c = collapse(region, layouts);
  if (const auto winograd = plan_winograd(c.region, c.layouts, target, 0)) return winograd->schedule;
  if (pixels_pay(region, target) && schedule_pixels(region, layouts, target, s)) return s;
  if (schedule_contraction(c.region, c.layouts, 0, target, s)) return s;
  if (schedule_window(c.region, c.layouts, 0, target, s)) return s;
  if (schedule_pixels(region, layouts, target, s)) return s;
  return plain_nest(region);
}

}  // namespace

Schedule choose_schedule(const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  Schedule s = choose_skeleton(region, layouts, target);
  if (!tabled_activations(region, target).empty()) s.set(kActivationTables, 1);
  return s;
}

}  // namespace opfuse
