// Contractions fed by Hopper's copy engine as a skeleton: narrow operands that are boxes or images of tensor maps, from
// 64 rows and columns on.
#include <fmt/format.h>

#include <algorithm>

#include "cuda/mma_operands.hpp"
#include "cuda/operand_maps.hpp"
#include "cuda/row_schedule.hpp"
#include "cuda/schedules.hpp"
#include "cuda/skeletons.hpp"
#include "cuda/tma.hpp"

namespace opfuse::cuda {
namespace {

bool has_copy_engine(const TargetInfo& target) { return target.cuda_arch == "sm_90a" || target.emulated; }

bool see(const Region& region, const TargetInfo& target) {
  return has_copy_engine(target) && see_narrow_product(region, target);
}

/// Which of the operands are tensor maps: all summed elements together where one of them is none.
void see_maps(const Region& region, const std::vector<ParamLayout>& layouts, const TileView& view, TmaSchedule& s) {
  s.map_a = map_of_operand(region, layouts, view, view.a, view.m, s.mma_m).has_value();
  s.map_b = map_of_operand(region, layouts, view, view.b, view.n, s.mma_n).has_value();
  if (s.map_a && s.map_b) return;
  s.map_a = map_of_flat_operand(region, layouts, view, view.a, view.m, s.mma_m).has_value();
  s.map_b = map_of_flat_operand(region, layouts, view, view.b, view.n, s.mma_n).has_value();
  s.copy_a = !s.map_a && copies_sixteen_bytes(region, layouts, view, view.a);
  s.copy_b = !s.map_b && copies_sixteen_bytes(region, layouts, view, view.b);
}

struct Tile {
  int64_t m, n;
  double cost;  ///< of a product beside that of the first tile: operands pass shared memory more often for it
};
constexpr Tile kTiles[] = {{128, 256, 1.0}, {128, 128, 1.05}, {128, 64, 1.25}, {64, 128, 1.2}, {64, 64, 1.5}};

/// Shared memory of a multiprocessor is that of one block of two groups, or of two of one.
int64_t resident(const Tile& tile) { return tile.m == 64 ? 2 : 1; }

int64_t tiles_of(const Tile& tile, int64_t m, int64_t n, int64_t batch) {
  return (m + tile.m - 1) / tile.m * ((n + tile.n - 1) / tile.n) * batch;
}

/// Results that the busiest multiprocessor computes, those outside the problem too.
double time_of(const Tile& tile, int64_t m, int64_t n, int64_t batch, const TargetInfo& target) {
  const int64_t at_once = std::max<int64_t>(1, target.multiprocessors);
  const int64_t each = (tiles_of(tile, m, n, batch) + at_once - 1) / at_once;
  return static_cast<double>(each * tile.m * tile.n) * tile.cost;
}

int64_t most_stages(TmaSchedule s, int64_t bytes) {
  for (s.stages = 8; s.stages > 2 && tma_shared_bytes(s) > bytes; --s.stages) {
  }
  return s.stages;
}

std::vector<Candidate> candidates(const Region& region, const std::vector<ParamLayout>& layouts,
                                  const TargetInfo& target, size_t) {
  if (target.emulated) return {};  // of the emulated device's kernels most are those of every architecture
  const TileView view = mma_view(region, layouts);
  const Stage& stage = region.stages[0];
  const int64_t m = typical_product(stage, view.m), n = typical_product(stage, view.n),
                k = typical_product(stage, view.k), batch = typical_product(stage, view.batch),
                chunk = chunk_of(view.a.dtype());
  if (std::min(m, n) < 64 || k < 2 * chunk) return {};
  const Tile& tile = *std::min_element(std::begin(kTiles), std::end(kTiles), [&](const Tile& x, const Tile& y) {
    return time_of(x, m, n, batch, target) < time_of(y, m, n, batch, target);
  });
  TmaSchedule s;
  s.mma_m = tile.m;
  s.mma_n = tile.n;
  see_maps(region, layouts, view, s);
  if (s.map_a + s.map_b < 2) {
    if (s.map_a + s.map_b == 0 || k % chunk)
      return {};                                // filled by threads its products wait for issue slots, as mma's do
    s.mma_n = std::min<int64_t>(s.mma_n, 128);  // the group that fills needs its registers
  }
  s.vector = stored_together(stage, layouts, view.n.back());
  s.map_y = s.vector == 8 && map_of_result(region, layouts, view, 64).has_value();
  const int64_t blocks = std::max<int64_t>(1, target.multiprocessors) * resident(tile);
  s.blocks = blocks;
  s.stages = most_stages(s, (target.shared_kilobytes << 10) / resident(tile) - (resident(tile) - 1) * 1024);
  if (tma_shared_bytes(s) > target.shared_kilobytes << 10) return {};
  return {{0, erased("tma", s)}};
}

std::optional<std::string> verify(const Schedule& schedule, const Region& region,
                                  const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  if (auto why = verify_fields<TmaSchedule>(schedule)) return why;
  if (!has_copy_engine(target)) return target.name + " has no copy engine (sm_90a)";
  const auto s = typed<TmaSchedule>(schedule);
  const TileView view = mma_view(region, layouts);
  if (s.mma_m % 64 || (s.mma_n != 64 && s.mma_n != 128 && s.mma_n != 256))
    return fmt::format("tiles of {} x {} are none of 64 rows by 64, 128 or 256 columns", s.mma_m, s.mma_n);
  if (const int64_t bytes = tma_shared_bytes(s); bytes > target.shared_kilobytes << 10)
    return fmt::format("{} stages are {} bytes, more than a block has", s.stages, bytes);
  const auto describe = s.map_a && s.map_b ? map_of_operand : map_of_flat_operand;
  if (s.map_a && !describe(region, layouts, view, view.a, view.m, s.mma_m)) return "map_a=1 of what is no tensor map";
  if (s.map_b && !describe(region, layouts, view, view.b, view.n, s.mma_n)) return "map_b=1 of what is no tensor map";
  if (s.copy_a && (s.map_a || !copies_sixteen_bytes(region, layouts, view, view.a)))
    return "copy_a=1 of data that lie apart";
  if (s.copy_b && (s.map_b || !copies_sixteen_bytes(region, layouts, view, view.b)))
    return "copy_b=1 of data that lie apart";
  if (s.vector != 1 && s.vector != stored_together(region.stages[0], layouts, view.n.back()))
    return fmt::format("vector={} of results that lie apart", s.vector);
  if (s.map_y && (s.vector != 8 || !map_of_result(region, layouts, view, 64)))
    return "map_y=1 of what is no tensor map";
  return std::nullopt;
}

}  // namespace

Skeleton tma_skeleton() {
  return {.name = "tma",
          .form = kGrouped,
          .see = see,
          .wish = wish_narrow_product,
          .candidates = candidates,
          .verify = verify};
}

}  // namespace opfuse::cuda
