// Contractions on tensor cores as a skeleton: both operands are stored, and multiplied, in 16 bits or as tf32, and want
// their channels last.
#include <fmt/format.h>

#include <algorithm>

#include "cuda/mma_copies.hpp"
#include "cuda/mma_operands.hpp"
#include "cuda/row_schedule.hpp"
#include "cuda/schedules.hpp"
#include "cuda/skeletons.hpp"
#include "cuda/stage.hpp"
#include "cuda/vector_body.hpp"
#include "kernel/views.hpp"

namespace opfuse::cuda {

bool see_narrow_product(const Region& region, const TargetInfo&) {
  const auto found = view_tiles(region);
  const auto* view = std::get_if<TileView>(&found);
  return view && !view->n.empty() && !view->m.empty() && factors_of(*view);
}

/// Channels last: the first summed axis in operands, the columns' axis in results. Weights of fewer channels than 16
/// bytes have stay as they are: what they are multiplied with is no image between kernels, but one of the graph's
/// inputs.
void wish_narrow_product(const Region& region, const TargetInfo&, LayoutWish& wish) {
  const TileView view = *factors_of(std::get<TileView>(view_tiles(region)));
  const Stage& stage = region.stages[0];
  const auto set = [&](int param, const IndexMap& map, int axis) {
    auto& wanted = wish.params[static_cast<size_t>(param)];
    if (!wanted) wanted = layout_along(map, region.params[static_cast<size_t>(param)].type.shape.rank(), axis);
  };
  const int64_t chunk = chunk_of(view.a.dtype());
  const auto few = [&](const Read& r) {
    const auto channels = stage.reduce[static_cast<size_t>(view.k.front()) - stage.domain.size()].constant();
    return region.params[static_cast<size_t>(r.index)].role == ParamRole::constant && channels && *channels % chunk;
  };
  for (const Expr* operand : {&view.a, &view.b})
    if (const int read = mma_read(*operand);
        read >= 0 && !view.k.empty() && !few(stage.reads[static_cast<size_t>(read)]))
      set(stage.reads[static_cast<size_t>(read)].index, stage.reads[static_cast<size_t>(read)].map, view.k.front());
  for (const StageOutput& o : stage.outputs) {
    set(o.param, o.map, view.n.back());
    for (int read : reads_used(o.value))
      if (const Read& r = stage.reads[static_cast<size_t>(read)]; r.map == o.map) set(r.index, r.map, view.n.back());
  }
}

namespace {

struct Tile {
  int64_t m, n, k, warp, stages;  ///< k of 16-bit types; of tf32 half as many
  double cost;  ///< of a product beside that of the first tile: shared memory is read more often for it
};
/// The third has four times as many warps for as many results: for few of them.
constexpr Tile kTiles[] = {{128, 128, 32, 64, 4, 1.0}, {128, 64, 32, 64, 4, 1.15}, {64, 64, 64, 32, 4, 1.7}};

/// Results that the busiest multiprocessor computes, those outside the problem too.
double time_of(const Tile& tile, int64_t m, int64_t n, int64_t batch, const TargetInfo& target) {
  const int64_t blocks = (m + tile.m - 1) / tile.m * ((n + tile.n - 1) / tile.n) * batch;
  const int64_t each = (blocks + target.multiprocessors - 1) / std::max<int64_t>(1, target.multiprocessors);
  return static_cast<double>(each * tile.m * tile.n) * tile.cost;
}

/// The steps of the third tile. Stages that divide their number ask at no step whether it is there. Twice as deep ones
/// have borders, jumps and barriers of twice as many products: windows have those where a step still is a whole one,
/// and three stages, as nine taps of one step each need no loop; so do other products whose number six divides and four
/// does not. Steps of several rows of a window have one more stage, where shared memory has room: jumps are then the
/// trip's.
void choose_steps(const Stage& stage, const TileView& view, const TargetInfo& target, MmaSchedule& s) {
  const std::vector<int> taps(view.k.begin(), view.k.end() - 1);
  const int64_t depth = typical_product(stage, view.k), steps = (depth + s.mma_k - 1) / s.mma_k;
  if (typical_product(stage, taps) > 1) {
    s.stages = 3;
    const WholeStep step = whole_step(stage, view.k, 2 * s.mma_k);
    if (step) s.mma_k *= 2;
    constexpr int64_t kBytes = 4 * (64 + 64) * 256;  // of four stages
    if (step.axes.size() > 1 && depth % (4 * s.mma_k) == 0 && kBytes <= target.shared_kilobytes << 10) s.stages = 4;
    return;
  }
  const bool deeper = depth % (6 * s.mma_k) == 0;
  s.stages = steps % 4 == 0 ? 4 : deeper ? 3 : steps % 5 == 0 ? 5 : steps % 3 == 0 ? 3 : s.stages;
  if (steps % 4 && deeper) s.mma_k *= 2;
}

std::vector<Candidate> candidates(const Region& region, const std::vector<ParamLayout>& layouts,
                                  const TargetInfo& target, size_t) {
  const TileView view = mma_view(region, layouts);
  const Stage& stage = region.stages[0];
  const int64_t m = typical_product(stage, view.m), n = typical_product(stage, view.n),
                k = typical_product(stage, view.k), batch = typical_product(stage, view.batch);
  if (std::min(m, n) < 8 || k < 8) return {};
  const Tile& tile = *std::min_element(std::begin(kTiles), std::end(kTiles), [&](const Tile& x, const Tile& y) {
    return time_of(x, m, n, batch, target) < time_of(y, m, n, batch, target);
  });
  MmaSchedule s;
  s.mma_m = tile.m;
  s.mma_n = tile.n;
  s.mma_k = tile.k * chunk_of(view.a.dtype()) / 8;
  s.warp = tile.warp;
  s.stages = tile.stages;
  if (&tile == &kTiles[2]) choose_steps(stage, view, target, s);
  s.copy_a = copies_sixteen_bytes(region, layouts, view, view.a);
  s.copy_b = copies_sixteen_bytes(region, layouts, view, view.b);
  s.vector = stored_together(stage, layouts, view.n.back());
  return {{0, erased("mma", s)}};
}

/// Places are XORed within 8 rows of 64 bytes, or 8 of 128 or 256: each thread's rows must be so many apart. `chunk`:
/// numbers in 16 bytes.
bool whole_tiles(const MmaSchedule& s, int64_t chunk) {
  const int64_t block = s.mma_m / s.warp * (s.mma_n / s.warp) * 32, chunks = s.mma_k / chunk;
  if (s.mma_m % 64 || s.mma_n % 64 || s.mma_k % chunk || s.warp % 32) return false;
  if (chunks != 4 && chunks != 8 && chunks != 16) return false;
  return block / 8 % chunks == 0 && s.mma_m * chunks % block == 0 && s.mma_n * chunks % block == 0;
}

/// 16 bytes at a time only where operands and results lie so.
std::optional<std::string> verify(const Schedule& schedule, const Region& region,
                                  const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  if (auto why = verify_fields<MmaSchedule>(schedule)) return why;
  const auto s = typed<MmaSchedule>(schedule);
  if (!whole_tiles(s, chunk_of(mma_view(region, layouts).a.dtype())))
    return fmt::format("tiles of {} x {} x {} are not whole for warps of {} x {}", s.mma_m, s.mma_n, s.mma_k, s.warp,
                       s.warp);
  return refuse_tiles({s.stages, s.mma_m, s.mma_n, s.mma_k, s.copy_a > 0, s.copy_b > 0, s.vector}, region, layouts,
                      target);
}

}  // namespace

Skeleton mma_skeleton() {
  return {.name = "mma",
          .form = kGrouped,
          .see = see_narrow_product,
          .wish = wish_narrow_product,
          .candidates = candidates,
          .verify = verify};
}

}  // namespace opfuse::cuda
