// Register-tiled contractions as a skeleton: convolutions, products of matrices, and several sums of the same data.
#include "cpu/contraction/direct_cost.hpp"
#include "cpu/contraction/gate_cost.hpp"
#include "cpu/schedules.hpp"
#include "cpu/skeletons.hpp"

namespace opfuse {
namespace {

bool see(const Region& region, const TargetInfo&) {
  return is_single(region) && std::holds_alternative<ContractionView>(view_products(region, 0));
}

std::optional<std::string> refuses(const Region& region, const TargetInfo&) { return refuse_sums(region); }

std::vector<Candidate> schedules(const Region& region, const std::vector<ParamLayout>& layouts,
                                 const TargetInfo& target, size_t most) {
  return erased("contraction", schedule_contraction(region, layouts, 0, target, most));
}

std::optional<std::string> check(const Schedule& schedule, const Region& region,
                                 const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  if (auto why = verify_fields<ContractionSchedule>(schedule)) return why;
  return misfit(typed<ContractionSchedule>(schedule), region, layouts, target);
}

}  // namespace

std::optional<std::string> refuse_sums(const Region& region) {
  const Stage& stage = region.stages[0];
  if (stage.anchor != Anchor::contraction || stage.reductions.size() == 1) return std::nullopt;
  const auto found = view_products(region, 0);
  if (const auto* why = std::get_if<std::string>(&found)) return "several sums: " + *why;
  const auto& view = std::get<ContractionView>(found);
  if (!axis_extent(stage, view.vec).is_constant() || !channel_depth(stage, view))
    return "several sums over symbolic features";
  if (!view.taps.empty() || view.group_out || view.guarded) return "several sums over windows";
  return std::nullopt;
}

Skeleton contraction_skeleton() {
  return {.name = "contraction",
          .form = kCollapsed,
          .see = see,
          .refuses = refuses,
          .wish = wish_contraction,
          .candidates = schedules,
          .verify = check,
          .cost = tiled_cycles,
          .loses = gate_loses};
}

}  // namespace opfuse
