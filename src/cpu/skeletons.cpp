// Which skeleton a schedule names, and what no skeleton takes.
#include "cpu/skeletons.hpp"

#include "base/fail.hpp"
#include "kernel/views.hpp"
#include "region/single_stage.hpp"

namespace opfuse {

Skeletons skeletons() {
#define OPFUSE_SKELETON(name) name##_skeleton(),
#define OPFUSE_SKELETON_AGAIN(form) form##_skeleton(),
  static const std::vector<Skeleton> kAll{
#include "cpu/skeletons.def"
  };
#undef OPFUSE_SKELETON
#undef OPFUSE_SKELETON_AGAIN
  return kAll;
}

const Skeleton& skeleton_of(const Schedule& schedule) {
  const Skeleton* found = find_skeleton(skeletons(), schedule.skeleton);
  if (!found) throw fail(E::codegen_failed, "no skeleton is named '{}'", schedule.skeleton);
  return *found;
}

bool is_single(const Region& region) { return is_single_stage(region) && !is_empty(region); }

std::optional<std::string> refuse_sequence(const Region& region) {
  for (const Stage& stage : region.stages)
    if (stage.anchor == Anchor::contraction && stage.reductions.size() != 1)
      return "several sums before or behind another stage";
  if (is_empty(region)) return "a stage without elements";
  return std::nullopt;
}

}  // namespace opfuse
