// Contractions on Hopper's tensor cores as a skeleton: from 64 rows and columns on, where a group's tile is full.
#include <fmt/format.h>

#include "cuda/mma_operands.hpp"
#include "cuda/row_schedule.hpp"
#include "cuda/schedules.hpp"
#include "cuda/skeletons.hpp"

namespace opfuse::cuda {
namespace {

bool has_group_products(const TargetInfo& target) { return target.cuda_arch == "sm_90a" || target.emulated; }

bool see(const Region& region, const TargetInfo& target) {
  return has_group_products(target) && see_narrow_product(region, target);
}

std::vector<Candidate> candidates(const Region& region, const std::vector<ParamLayout>& layouts,
                                  const TargetInfo& target, size_t) {
  if (target.emulated) return {};  // of the emulated device's kernels most are those of every architecture
  const TileView view = mma_view(region, layouts);
  const Stage& stage = region.stages[0];
  const int64_t m = typical_product(stage, view.m), n = typical_product(stage, view.n),
                k = typical_product(stage, view.k), batch = typical_product(stage, view.batch);
  if (std::min(m, n) < 64 || k < 2 * chunk_of(view.a.dtype())) return {};
  const auto blocks = [&](int64_t columns) { return (m + 127) / 128 * ((n + columns - 1) / columns) * batch; };
  WgmmaSchedule s;
  s.mma_n = n % 128 == 0 && blocks(128) >= target.multiprocessors ? 128 : 64;
  s.copy_a = copies_sixteen_bytes(region, layouts, view, view.a);
  s.copy_b = copies_sixteen_bytes(region, layouts, view, view.b);
  if (!s.copy_a || !s.copy_b) return {};  // filled element by element its products wait for issue slots, as mma's do
  s.vector = stored_together(stage, layouts, view.n.back());
  return {{0, erased("wgmma", s)}};
}

std::optional<std::string> verify(const Schedule& schedule, const Region& region,
                                  const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  if (auto why = verify_fields<WgmmaSchedule>(schedule)) return why;
  if (!has_group_products(target)) return target.name + " has no products of four warps (sm_90a)";
  const auto s = typed<WgmmaSchedule>(schedule);
  if (s.mma_m % 64 || s.mma_n % 64) return fmt::format("tiles of {} x {}, not of 64s", s.mma_m, s.mma_n);
  return refuse_tiles({s.stages, s.mma_m, s.mma_n, 8 * chunk_of(mma_view(region, layouts).a.dtype()), s.copy_a > 0,
                       s.copy_b > 0, s.vector},
                      region, layouts, target);
}

}  // namespace

Skeleton wgmma_skeleton() {
  return {.name = "wgmma",
          .form = kGrouped,
          .see = see,
          .wish = wish_narrow_product,
          .candidates = candidates,
          .verify = verify};
}

}  // namespace opfuse::cuda
