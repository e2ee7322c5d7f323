// Everything but tiles as a skeleton: any single stage, any layouts.
#include <fmt/format.h>

#include "cuda/mma_operands.hpp"
#include "cuda/row_reads.hpp"
#include "cuda/row_schedule.hpp"
#include "cuda/schedules.hpp"
#include "cuda/skeletons.hpp"
#include "region/single_stage.hpp"

namespace opfuse::cuda {
namespace {

bool see(const Region& region, const TargetInfo&) { return is_single_stage(region); }

void wish(const Region& region, const TargetInfo&, LayoutWish& wish) { wish_channels_last(region, wish); }

std::vector<Candidate> candidates(const Region& region, const std::vector<ParamLayout>& layouts,
                                  const TargetInfo& target, size_t) {
  RowsSchedule s;
  choose_rows(region, layouts, target, s);
  return {{0, erased(kRowsName, s)}};
}

/// A team is a thread, a warp, or the block; several reductions of a team go through shared memory by warps.
std::optional<std::string> verify(const Schedule& schedule, const Region&, const std::vector<ParamLayout>&,
                                  const TargetInfo&) {
  if (auto why = verify_fields<RowsSchedule>(schedule)) return why;
  const auto s = typed<RowsSchedule>(schedule);
  if (s.block % 32) return fmt::format("block={} is not a whole number of warps", s.block);
  if (s.across && (s.team < 2 || s.block != 32 * s.team || s.vector != 1 || s.held))
    return fmt::format("across=1 with team={} block={}: the block has 32 rows", int64_t{s.team}, s.block);
  if (!s.across && s.team != 1 && s.team != 32 && s.team != s.block)
    return fmt::format("team={} is neither a thread, a warp nor the block", int64_t{s.team});
  return std::nullopt;
}

}  // namespace

void wish_channels_last(const Region& region, LayoutWish& wish) {
  const Stage& stage = region.stages[0];
  if (stage.anchor != Anchor::window || stage.domain.size() < 3) return;
  const auto set = [&](int param, const IndexMap& map) {
    const TensorType& type = region.params[static_cast<size_t>(param)].type;
    if (!is_factor(type.dtype) || type.shape.rank() < 3) return;
    wish.params[static_cast<size_t>(param)] = layout_along(map, type.shape.rank(), 1);
  };
  for (const Read& r : stage.reads) set(r.index, r.map);
  for (const StageOutput& o : stage.outputs)
    if (o.param >= 0) set(o.param, o.map);
}

Skeleton rows_skeleton() {
  return {.name = kRowsName,
          .form = kGrouped,
          .see = see,
          .any_layouts = true,
          .wish = wish,
          .candidates = candidates,
          .verify = verify};
}

}  // namespace opfuse::cuda
