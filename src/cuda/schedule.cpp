// What the CUDA generator accepts, and layouts and schedules as its table of skeletons has them.
#include "cuda/generator.hpp"
#include "cuda/skeletons.hpp"
#include "region/single_stage.hpp"

namespace opfuse::cuda {

namespace {

std::optional<std::string> refuse_single(const Region& region) {
  const Stage& stage = region.stages[0];
  if (stage.outputs.empty()) return "a stage without outputs";
  if (stage.anchor == Anchor::contraction && stage.reductions.size() > 1) return "CUDA kernels have one product";
  for (const StageOutput& o : stage.outputs)
    if (o.param < 0) return "a result that stays in the kernel";
  for (const Read& r : stage.reads)
    if (r.stage >= 0) return "a read of another stage";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> cannot_generate(const Region& region, const TargetInfo& target) {
  if (region.stages.empty()) return "no stage";
  const Skeleton* skeleton = first_to_see(skeletons(), region, target);
  if (!skeleton) return "CUDA kernels have one stage";
  for (const Param& p : region.params)
    if (byte_size(p.type.dtype) == 0) return "elements of type " + std::string(name_of(p.type.dtype));
  if (skeleton->refuses)
    if (auto why = skeleton->refuses(region, target)) return why;
  return is_single_stage(region) ? refuse_single(region) : std::nullopt;
}

LayoutWish wish_layouts(const Region& region, const TargetInfo& target) {
  return wish_layouts(skeletons(), region, target);
}

Schedule choose_schedule(const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  return choose_schedule(skeletons(), region, layouts, target);
}

}  // namespace opfuse::cuda
