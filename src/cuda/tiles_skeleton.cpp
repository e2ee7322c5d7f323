// Contractions in fp32 arithmetic as a skeleton; any layouts.
#include <fmt/format.h>

#include "cuda/row_schedule.hpp"
#include "cuda/schedules.hpp"
#include "cuda/skeletons.hpp"

namespace opfuse::cuda {
namespace {

bool see(const Region& region, const TargetInfo&) { return std::holds_alternative<TileView>(view_tiles(region)); }

constexpr int64_t kThreads = 16;  ///< of a block, along rows and along columns

/// Time is not modelled: larger tiles where there are many of them.
std::vector<Candidate> candidates(const Region& region, const std::vector<ParamLayout>&, const TargetInfo&, size_t) {
  const auto view = std::get<TileView>(view_tiles(region));
  const Stage& stage = region.stages[0];
  const int64_t m = typical_product(stage, view.m), n = typical_product(stage, view.n),
                k = typical_product(stage, view.k);
  if (std::min(m, n) < 4) return {};  // a matrix times a vector: rows
  const bool large = m >= 128 && n >= 128 && m * n >= int64_t{1} << 20;
  TilesSchedule s;
  s.per_m = s.per_n = large ? 8 : std::min(m, n) <= 16 ? 2 : 4;
  s.tile_m = kThreads * s.per_m;
  s.tile_n = kThreads * s.per_n;
  s.tile_k = k <= 8 ? 8 : 16;
  return {{0, erased("tiles", s)}};
}

std::optional<std::string> verify(const Schedule& schedule, const Region&, const std::vector<ParamLayout>&,
                                  const TargetInfo&) {
  if (auto why = verify_fields<TilesSchedule>(schedule)) return why;
  const auto s = typed<TilesSchedule>(schedule);
  if (s.tile_m != kThreads * s.per_m) return fmt::format("tile_m={} of {} threads", s.tile_m, kThreads);
  if (s.tile_n != kThreads * s.per_n) return fmt::format("tile_n={} of {} threads", s.tile_n, kThreads);
  return std::nullopt;
}

}  // namespace

Skeleton tiles_skeleton() {
  return {.name = "tiles", .form = kGrouped, .see = see, .candidates = candidates, .verify = verify};
}

}  // namespace opfuse::cuda
