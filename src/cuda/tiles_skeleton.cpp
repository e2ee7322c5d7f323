// Contractions in fp32 arithmetic as a skeleton; any layouts.
#include "cuda/row_schedule.hpp"
#include "cuda/skeletons.hpp"

namespace opfuse::cuda {
namespace {

bool see(const Region& region, const TargetInfo&) { return std::holds_alternative<TileView>(view_tiles(region)); }

std::vector<Schedule> candidates(const Region& region, const std::vector<ParamLayout>&, const TargetInfo&) {
  const auto view = std::get<TileView>(view_tiles(region));
  const Stage& stage = region.stages[0];
  const int64_t m = typical_product(stage, view.m), n = typical_product(stage, view.n),
                k = typical_product(stage, view.k);
  if (std::min(m, n) < 4) return {};  // a matrix times a vector: rows
  const bool large = m >= 128 && n >= 128 && m * n >= int64_t{1} << 20;
  const int64_t per = large ? 8 : std::min(m, n) <= 16 ? 2 : 4;
  Schedule s;
  s.set("tile_m", 16 * per);
  s.set("tile_n", 16 * per);
  s.set("tile_k", k <= 8 ? 8 : 16);
  s.set("per_m", per);
  s.set("per_n", per);
  return {s};
}

}  // namespace

Skeleton tiles_skeleton() { return {.name = "tiles", .form = kGrouped, .see = see, .candidates = candidates}; }

}  // namespace opfuse::cuda
