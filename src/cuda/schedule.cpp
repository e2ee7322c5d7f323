// What the CUDA generator accepts, and layouts and schedules as its table of skeletons has them.
#include "cuda/generator.hpp"
#include "cuda/skeletons.hpp"
#include "kernel/attention_view.hpp"

namespace opfuse::cuda {

std::optional<std::string> cannot_generate(const Region& region, const TargetInfo& target) {
  if (region.stages.empty()) return "no stage";
  if (!first_to_see(skeletons(), region, target))
    return resembles_attention(region) ? "attention is not a kernel of its own on GPUs, its products and softmax are"
                                       : "CUDA kernels have one stage";
  for (const Param& p : region.params)
    if (byte_size(p.type.dtype) == 0) return "elements of type " + std::string(name_of(p.type.dtype));
  const Stage& stage = region.stages[0];
  if (stage.outputs.empty()) return "a stage without outputs";
  if (stage.anchor == Anchor::contraction && stage.reductions.size() > 1) return "CUDA kernels have one product";
  for (const StageOutput& o : stage.outputs)
    if (o.param < 0) return "a result that stays in the kernel";
  for (const Read& r : stage.reads)
    if (r.stage >= 0) return "a read of another stage";
  return std::nullopt;
}

LayoutWish wish_layouts(const Region& region, const TargetInfo& target) {
  return wish_layouts(skeletons(), region, target);
}

Schedule choose_schedule(const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  return choose_schedule(skeletons(), region, layouts, target);
}

}  // namespace opfuse::cuda
