// A convolution and a window in one kernel, as a skeleton: each stage wishes as it would alone.
#include "cpu/contraction/matrix.hpp"
#include "cpu/schedules.hpp"
#include "cpu/skeletons.hpp"
#include "cpu/window/chain_cost.hpp"
#include "cpu/window/chain_cut.hpp"
#include "cpu/window/chain_view.hpp"
#include "cpu/window/mean_view.hpp"

namespace opfuse {
namespace {

bool see(const Region& region, const TargetInfo&) { return stages_without_means(region) == 2; }

std::optional<std::string> refuses(const Region& region, const TargetInfo& target) {
  if (auto why = refuse_sequence(region)) return why;
  const auto found = view_chain(region);
  if (const auto* why = std::get_if<std::string>(&found)) return *why;
  if (has_matrix_products(std::get<ChainView>(found).first.types, target))
    return "the convolution: matrices multiply bf16, and not into the rows of a chain";
  return std::nullopt;
}

void wish(const Region& region, const TargetInfo& target, LayoutWish& wish) {
  if (refuses(region, target)) return;
  wish_contraction(region, target, wish);
  wish_windows(region, 1, target, wish);
}

std::vector<Candidate> schedules(const Region& region, const std::vector<ParamLayout>& layouts,
                                 const TargetInfo& target, size_t most) {
  return erased("chain", schedule_chain(region, layouts, target, most));
}

std::optional<std::string> check(const Schedule& schedule, const Region& region,
                                 const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  if (auto why = verify_fields<ChainSchedule>(schedule)) return why;
  return misfit(typed<ChainSchedule>(schedule), region, layouts, target);
}

int64_t scratch(const Schedule& schedule, const Region& region, const TargetInfo& target) {
  const auto found = view_chain(region);
  const auto* view = std::get_if<ChainView>(&found);
  const auto s = typed<ChainSchedule>(schedule);
  return view ? chain_scratch(region, *view, s.nv, s.band, target) : 0;
}

}  // namespace

Skeleton chain_skeleton() {
  return {.name = "chain",
          .form = kAsLowered,
          .see = see,
          .refuses = refuses,
          .wish = wish,
          .candidates = schedules,
          .verify = check,
          .scratch = scratch,
          .loses = chain_loses};
}

}  // namespace opfuse
