// The questions that a table of skeletons answers, each a walk down the table.
#include "kernel/skeleton.hpp"

namespace opfuse {
namespace {

Region unchanged(const Region& region) { return region; }
Collapsed unchanged_under(const Region& region, const std::vector<ParamLayout>& layouts) { return {region, layouts}; }

}  // namespace

const RegionForm kAsLowered = {unchanged, unchanged_under};
const RegionForm kCollapsed = {without_unit_axes, collapse};

const Skeleton* find_skeleton(Skeletons table, std::string_view name) {
  for (const Skeleton& skeleton : table)
    if (skeleton.name == name) return &skeleton;
  return nullptr;
}

const Skeleton* first_to_see(Skeletons table, const Region& region, const TargetInfo& target) {
  for (const Skeleton& skeleton : table)
    if (skeleton.see(skeleton.form.of(region), target)) return &skeleton;
  return nullptr;
}

LayoutWish wish_layouts(Skeletons table, const Region& region, const TargetInfo& target) {
  LayoutWish wish;
  wish.params.resize(region.params.size());
  for (const Skeleton& skeleton : table) {
    if (!skeleton.wish) continue;
    const Region seen = skeleton.form.of(region);
    if (!skeleton.see(seen, target)) continue;
    skeleton.wish(seen, target, wish);
    break;
  }
  return wish;
}

Schedule choose_schedule(Skeletons table, const Region& region, const std::vector<ParamLayout>& layouts,
                         const TargetInfo& target) {
  for (const Skeleton& skeleton : table) {
    const Collapsed c = skeleton.form.under(region, layouts);
    if (!skeleton.see(c.region, target)) continue;
    std::vector<Schedule> found = skeleton.candidates(c.region, c.layouts, target);
    if (found.empty()) continue;
    found.front().skeleton = skeleton.name;
    return std::move(found.front());
  }
  return {};
}

}  // namespace opfuse
