// Schedules of a product and the reduction of its rows in one kernel: the product's own tiles, over bands of rows that
// are reduced as soon as their last column is done. Numbers: cpu/product_rows/product_rows_schedule.hpp.
#include <algorithm>

#include "base/integers.hpp"
#include "cpu/contraction/cache_blocking.hpp"
#include "cpu/product_rows/product_rows_cost.hpp"
#include "cpu/schedules.hpp"

namespace opfuse {
namespace {

/// Tiles may not overlap, sums not rest: the rows are reduced as soon as the last column is done.
ProductRowsSchedule schedule_with(const ContractionSchedule& tiles, const ProductRowsCut& cut, const Region& region,
                                  const std::vector<ParamLayout>& layouts, const ProductRowsView& view,
                                  const TargetInfo& target) {
  ProductRowsSchedule s;
  s.nv = tiles.nv;
  s.tile_w = tiles.tile_w;
  s.step = tiles.step;
  s.half = tiles.half;
  s.band = cut.band;
  if (cut.parts_p > 1) s.parts_p = cut.parts_p;
  if (cut.parts_batch > 1) s.parts_batch = cut.parts_batch;
  const int64_t depth = channel_depth(region.stages[0], view.product);
  const double bytes = 4.0 * static_cast<double>(view.columns * depth);
  const int64_t lines = s.step * s.nv * target.lanes_f32() / target.line_floats();
  const int64_t sharing = ceil_of(cut.band, s.tile_w);
  if (bytes > target.shares.weights * static_cast<double>(target.l2_bytes) && sharing > 1)
    s.prefetch = ceil_of(lines, sharing);
  if (fetches_data(s, region, layouts, view.product, target)) s.fetch_data = 1;
  return s;
}

bool takes(const ContractionSchedule& s) { return !s.matrix && !s.pack && !s.decode && !s.grouped && s.tile_h == 1; }

/// Lanes run along the columns of the results.
bool results_are_dense(const Region& region, const std::vector<ParamLayout>& layouts) {
  const auto& outputs = region.stages[1].outputs;
  return std::all_of(outputs.begin(), outputs.end(),
                     [&](const StageOutput& o) { return layouts[static_cast<size_t>(o.param)].layout.is_dense(); });
}

}  // namespace

std::vector<Ranked<ProductRowsSchedule>> schedule_product_rows(const Region& region,
                                                               const std::vector<ParamLayout>& layouts,
                                                               const TargetInfo& target, size_t most) {
  const auto found = view_product_rows(region);
  const auto* view = std::get_if<ProductRowsView>(&found);
  if (!view || !results_are_dense(region, layouts)) return {};
  const ProductRowsCut cut = cut_product_rows(region, *view, target);
  std::vector<Ranked<ProductRowsSchedule>> schedules;
  for (const auto& [cycles, tiles] : schedule_contraction(region, layouts, 0, target, most + 1))
    if (takes(tiles) && schedules.size() < most)
      schedules.push_back({cycles, schedule_with(tiles, cut, region, layouts, *view, target)});
  return schedules;
}

}  // namespace opfuse
