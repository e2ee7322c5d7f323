// The table of skeletons, special ones first: a contraction that tensor cores do not take is one of tiles, what is no
// contraction, or too narrow for tiles, is rows.
#include "cuda/skeletons.hpp"

#include "cuda/schedules.hpp"
#include "region/single_stage.hpp"

namespace opfuse::cuda {
namespace {

Region grouped(const Region& region) {
  Region simple = region;
  split_groups(simple);
  return simple;
}

Collapsed grouped_under(const Region& region, const std::vector<ParamLayout>& layouts) {
  Collapsed simple = collapse(region, layouts);
  split_groups(simple.region);
  return simple;
}

bool is_scatter(const Region& region, const TargetInfo&) {
  return is_single_stage(region) && region.stages[0].anchor == Anchor::scatter;
}

std::vector<Candidate> updates(const Region&, const std::vector<ParamLayout>&, const TargetInfo&, size_t) {
  return {{0, erased("scatter", ScatterSchedule{})}};
}

}  // namespace

const RegionForm kGrouped = {grouped, grouped_under};

Skeleton scatter_skeleton() {
  return {.name = "scatter",
          .form = kGrouped,
          .see = is_scatter,
          .any_layouts = true,
          .candidates = updates,
          .verify = verify_as<ScatterSchedule>};
}

Skeletons skeletons() {
  static const std::vector<Skeleton> kAll{scatter_skeleton(),   attention_tma_skeleton(), attention_mma_skeleton(),
                                          attention_skeleton(), tma_skeleton(),           wgmma_skeleton(),
                                          mma_skeleton(),       tiles_skeleton(),         window_rows_skeleton(),
                                          depthwise_skeleton(), rows_skeleton()};
  return kAll;
}

}  // namespace opfuse::cuda
