// Everything that is no tile as a skeleton: any single stage, any layouts.
#include "cuda/mma_operands.hpp"
#include "cuda/row_reads.hpp"
#include "cuda/row_schedule.hpp"
#include "cuda/skeletons.hpp"

namespace opfuse::cuda {
namespace {

bool see(const Region& region, const TargetInfo&) { return region.stages.size() == 1; }

/// Windows in half precision: images and filters with their channels last, as tensor cores want their neighbours.
void wish(const Region& region, const TargetInfo&, LayoutWish& wish) {
  const Stage& stage = region.stages[0];
  if (stage.anchor != Anchor::window || stage.domain.size() < 3) return;
  const auto set = [&](int param, const IndexMap& map) {
    const TensorType& type = region.params[static_cast<size_t>(param)].type;
    if (!is_half(type.dtype) || type.shape.rank() < 3) return;
    wish.params[static_cast<size_t>(param)] = layout_along(map, type.shape.rank(), 1);
  };
  for (const Read& r : stage.reads) set(r.index, r.map);
  for (const StageOutput& o : stage.outputs) set(o.param, o.map);
}

std::vector<Schedule> candidates(const Region& region, const std::vector<ParamLayout>& layouts,
                                 const TargetInfo& target) {
  Schedule s;
  choose_rows(region, layouts, target, s);
  return {s};
}

}  // namespace

Skeleton rows_skeleton() {
  return {.name = kRowsName, .form = kGrouped, .see = see, .wish = wish, .candidates = candidates};
}

}  // namespace opfuse::cuda
