// Depthwise convolutions as a skeleton: 16-bit types with their channels last.
#include <fmt/format.h>

#include "cuda/depthwise_view.hpp"
#include "cuda/row_schedule.hpp"
#include "cuda/schedules.hpp"
#include "cuda/skeletons.hpp"

namespace opfuse::cuda {
namespace {

bool see(const Region& region, const TargetInfo&) { return resembles_depthwise(region); }

void wish(const Region& region, const TargetInfo&, LayoutWish& wish) { wish_channels_last(region, wish); }

/// As many columns as divide a row; fewer where threads would be too few.
int64_t columns_of(const Stage& stage, const DepthwiseView& view, const TargetInfo& target) {
  std::vector<int> all;
  for (int axis = 0; axis < static_cast<int>(stage.domain.size()); ++axis) all.push_back(axis);
  const int64_t vectors = typical_product(stage, all) / 8, wanted = target.multiprocessors * 256;
  for (int64_t columns : {8, 7})
    if (view.columns % columns == 0 && vectors / columns >= wanted) return columns;
  return vectors / 4 >= wanted ? 4 : 2;
}

std::vector<Candidate> candidates(const Region& region, const std::vector<ParamLayout>& layouts,
                                  const TargetInfo& target, size_t) {
  const auto view = view_depthwise(region, layouts);
  if (!view) return {};
  DepthwiseSchedule s;
  s.columns = columns_of(region.stages[0], *view, target);
  return {{0, erased("depthwise", s)}};
}

std::optional<std::string> verify(const Schedule& schedule, const Region& region,
                                  const std::vector<ParamLayout>& layouts, const TargetInfo&) {
  if (auto why = verify_fields<DepthwiseSchedule>(schedule)) return why;
  if (typed<DepthwiseSchedule>(schedule).block % 32) return "block is not a whole number of warps";
  if (!view_depthwise(region, layouts)) return "eight channels do not lie together";
  return std::nullopt;
}

}  // namespace

Skeleton depthwise_skeleton() {
  return {.name = "depthwise", .form = kGrouped, .see = see, .wish = wish, .candidates = candidates, .verify = verify};
}

}  // namespace opfuse::cuda
