// Layouts and schedules as the table of skeletons has them.
#include "cpu/activation_form.hpp"
#include "cpu/generator.hpp"
#include "cpu/skeletons.hpp"

namespace opfuse {

LayoutWish wish_layouts(const Region& region, const TargetInfo& target) {
  return wish_layouts(skeletons(), region, target);
}

std::vector<Candidate> candidates(const Region& region, const std::vector<ParamLayout>& layouts,
                                  const TargetInfo& target, size_t most) {
  std::vector<Candidate> found = candidates(skeletons(), region, layouts, target, most);
  if (!tabled_activations(region, target).empty())
    for (Candidate& candidate : found) candidate.choice.set(kActivationTables, 1);
  return found;
}

Schedule choose_schedule(const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  const std::vector<Candidate> found = candidates(region, layouts, target, 1);
  return found.empty() ? Schedule{} : found.front().choice;
}

std::optional<std::string> joining_loses(const Region& region, const TargetInfo& target) {
  const Skeleton* skeleton = first_to_see(skeletons(), region, target);
  return skeleton && skeleton->loses ? skeleton->loses(region, target) : std::nullopt;
}

}  // namespace opfuse
