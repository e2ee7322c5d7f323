// The analytic schedule model: which skeleton, and its tile, layouts and parts.
#include <algorithm>

#include "codegen/collapse.hpp"
#include "codegen/schedule_parts.hpp"
#include "codegen/schedule_winograd.hpp"
#include "codegen/schedules.hpp"

namespace opfuse {

Schedule choose_schedule(const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  Schedule s;
  if (region.stages.size() == 3) {
    schedule_attention(region, target, s);
    return s;
  }
  if (region.stages.size() == 2) {
    // the pool's rows are cut into bands, every part computes the convolution rows its band needs
    Schedule pool;
    if (!schedule_contraction(region, layouts, 0, target, s) || !schedule_window(region, layouts, 1, target, pool))
      return {};
    s.set("pool_w", pool.get("tile_w", 1));
    // few bands: rows at their borders are computed twice
    const int64_t wanted = std::min<int64_t>(8, wanted_parts(static_cast<double>(work_of(region.stages[0])), target));
    const int64_t rows = region.stages[1].domain[2].value();
    const int64_t blocks = ceil_div(region.stages[0].domain[1], s.get("nv", 1) * target.lanes_f32()).value();
    split_parts(s, wanted, blocks, rows, 1.0, 1.0);
    return s;
  }
  const Collapsed c = collapse(region, layouts);
  if (const auto winograd = plan_winograd(c.region, c.layouts, target, 0)) return winograd->schedule;
  if (pixels_pay(region, target) && schedule_pixels(region, layouts, target, s)) return s;
  if (schedule_contraction(c.region, c.layouts, 0, target, s)) return s;
  if (schedule_window(c.region, c.layouts, 0, target, s)) return s;
  if (schedule_pixels(region, layouts, target, s)) return s;
  const Anchor anchor = region.stages.empty() ? Anchor::map : region.stages[0].anchor;
  if (anchor == Anchor::contraction || anchor == Anchor::window) s.set("generic", 1);
  return s;
}

}  // namespace opfuse
