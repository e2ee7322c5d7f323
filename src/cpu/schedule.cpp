// Layouts and schedules as the table of skeletons has them.
#include "cpu/activation_form.hpp"
#include "cpu/generator.hpp"
#include "cpu/skeletons.hpp"

namespace opfuse {

LayoutWish wish_layouts(const Region& region, const TargetInfo& target) {
  return wish_layouts(skeletons(), region, target);
}

Schedule choose_schedule(const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  Schedule s = choose_schedule(skeletons(), region, layouts, target);
  if (!tabled_activations(region, target).empty()) s.set(kActivationTables, 1);
  return s;
}

std::optional<std::string> joining_loses(const Region& region, const TargetInfo& target) {
  const Skeleton* skeleton = first_to_see(skeletons(), region, target);
  return skeleton && skeleton->loses ? skeleton->loses(region, target) : std::nullopt;
}

}  // namespace opfuse
