#include "cpu/workspace.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cpu/skeletons.hpp"
#include "region/single_stage.hpp"

namespace opfuse {

double scratch_room(double share, const TargetInfo& target) {
  const double room = share * static_cast<double>(target.l2_bytes);
  const auto& most = target.launch.workspace;
  return most ? std::min(room, static_cast<double>(*most)) : room;
}

bool within_workspace(int64_t bytes, const TargetInfo& target) {
  return !target.launch.workspace || bytes <= *target.launch.workspace;
}

std::optional<std::string> exceeds_workspace(const Region& region, const TargetInfo& target) {
  if (!target.launch.workspace || is_single_stage(region)) return std::nullopt;
  const LayoutWish wish = wish_layouts(skeletons(), region, target);
  std::vector<ParamLayout> layouts;
  for (size_t p = 0; p < region.params.size(); ++p) {
    const Shape& shape = region.params[p].type.shape;
    const Layout layout = wish.params[p].value_or(Layout::dense(shape.rank()));
    layouts.push_back({layout, dense_strides(layout, shape)});
  }
  const Schedule schedule = choose_schedule(skeletons(), region, layouts, target);
  const Skeleton* skeleton = find_skeleton(skeletons(), schedule.skeleton);
  if (!skeleton || !skeleton->scratch) return std::nullopt;
  const int64_t bytes = skeleton->scratch(schedule, region, target);
  if (within_workspace(bytes, target)) return std::nullopt;
  return fmt::format("one kernel takes {} bytes of scratch per thread at the least, and --workspace allows {}", bytes,
                     *target.launch.workspace);
}

}  // namespace opfuse
