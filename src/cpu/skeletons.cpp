// The table of skeletons. Order decides: special forms stand before those that would take their regions too. A
// contraction is seen by four of them, and the layout of its weights says which one it has (winograd), or the cost
// (pixels).
#include "cpu/skeletons.hpp"

#include "base/fail.hpp"
#include "kernel/views.hpp"

namespace opfuse {

Skeletons skeletons() {
  static const std::vector<Skeleton> kAll{
      scatter_skeleton(), attention_skeleton(),   chain_skeleton(),  winograd_skeleton(),   dense_pixels_skeleton(),
      pixels_skeleton(),  contraction_skeleton(), window_skeleton(), any_pixels_skeleton(), generic_skeleton()};
  return kAll;
}

const Skeleton& skeleton_of(const Schedule& schedule) {
  const Skeleton* found = find_skeleton(skeletons(), schedule.skeleton);
  if (!found) throw fail(E::codegen_failed, "no skeleton is named '{}'", schedule.skeleton);
  return *found;
}

bool is_single(const Region& region) { return region.stages.size() == 1 && !is_empty(region); }

std::optional<std::string> refuse_sequence(const Region& region) {
  for (const Stage& stage : region.stages)
    if (stage.anchor == Anchor::contraction && stage.reductions.size() != 1)
      return "several sums before or behind another stage";
  if (is_empty(region)) return "a stage without elements";
  return std::nullopt;
}

}  // namespace opfuse
