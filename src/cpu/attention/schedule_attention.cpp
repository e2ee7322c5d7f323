// Schedules of attention, from extents and the target alone: the rows of a register tile, and what follows from them.
// Numbers: cpu/attention/attention_schedule.hpp.
#include <algorithm>
#include <cmath>

#include "base/integers.hpp"
#include "cpu/attention/attention_scratch.hpp"
#include "cpu/contraction/register_tile.hpp"
#include "cpu/schedule_parts.hpp"
#include "cpu/schedules.hpp"
#include "cpu/workspace.hpp"

namespace opfuse {
namespace {

constexpr int64_t kGroupRows = 256;
constexpr int64_t kPackedTiles = 1;   ///< that take as long as packing K and V of a matrix
constexpr int64_t kTilesPerPart = 4;  ///< what a part packs is used at least as often
constexpr int64_t kMostVectors = 8;

/// Vectors of `extent` columns side by side, in equal shares, with `rows` rows in registers.
int64_t vectors_of(int64_t extent, int64_t rows, const TargetInfo& target) {
  const int64_t all = ceil_of(extent, target.lanes_f32());
  int64_t most = 1;
  while (most < std::min(all, kMostVectors) && fits({most + 1, rows}, target)) ++most;
  return ceil_of(all, ceil_of(all, most));
}

/// Rows of a tile beside at least three vectors: the fewest computed rows and the best use of the units.
std::vector<Ranked<int64_t>> rows_by_time(std::optional<int64_t> extent, const TargetInfo& target, size_t most) {
  const int64_t rows = extent.value_or(1 << 10);
  const double row_cycles = 3.0 / static_cast<double>(target.fma_units);  // of a step: three vectors
  Fastest<int64_t> fastest(most);
  for (int64_t r = 1; r == 1 || (r <= rows && fits({target.vector_registers > 16 ? 3 : 2, r}, target)); ++r) {
    const double step = static_cast<double>(r) * row_cycles + target.kernels.attention_step;
    fastest.offer(static_cast<double>(ceil_of(rows, r)) * step, r);
  }
  return fastest.all();
}

/// Pieces of the rows of each matrix, for many threads: rounds of parts, each its tiles and what it packs.
int64_t pieces_for(int64_t batch, int64_t tiles, int64_t threads) {
  Fastest<int64_t> fastest(1);
  for (int64_t p = 1; p <= std::min(tiles, threads); ++p)
    fastest.offer(static_cast<double>(ceil_of(batch * p, threads) * (ceil_of(tiles, p) + kPackedTiles)), p);
  return fastest.all().front().choice;
}

void cut_parts(AttentionSchedule& s, const Region& region, const AttentionView& view, const TargetInfo& target) {
  const auto& domain = region.stages[0].domain;
  std::optional<int64_t> batch = 1;
  for (int axis = 0; axis < view.row; ++axis) {
    const auto extent = domain[static_cast<size_t>(axis)].constant();
    batch = batch && extent ? std::optional(*batch * *extent) : std::nullopt;
  }
  if (!batch) return;  // one part per matrix
  const double work = static_cast<double>(work_of(region.stages[0]) + work_of(region.stages[2]));
  const int64_t wanted = wanted_parts(work, target);
  const int64_t tiles = ceil_of(domain[static_cast<size_t>(view.row)].constant().value_or(1), s.rows);
  const int64_t threads = target.launch.threads;
  if (threads > kFewThreads && *batch < 2 * threads && wanted >= std::min(*batch, threads)) {
    s.parts_p = pieces_for(std::max<int64_t>(*batch, 1), tiles, threads);
    return;
  }
  if (2 * *batch < wanted) {  // tiles of one matrix in several parts pack its K and V in each
    s.parts_p = std::clamp<int64_t>(tiles / kTilesPerPart, 1, ceil_of(wanted, std::max<int64_t>(*batch, 1)));
    return;
  }
  int64_t parts = std::min(wanted, *batch);
  for (int64_t p = wanted; p <= 2 * wanted; ++p)
    if (*batch % p == 0 && p % 2 == 0) parts = p;
  s.parts_batch = parts;
}

/// The most keys per block, and the most rows that pass over the blocks together, that the workspace has room for; one
/// panel and one tile where it has none.
void keep_within(AttentionSchedule& s, const Region& region, const AttentionView& view, const TargetInfo& target) {
  const auto fits_in = [&] {
    return within_workspace(attention_scratch(s, view, region, target).bytes(target), target);
  };
  if (fits_in()) return;
  const int64_t panel = s.nv * target.lanes_f32(), most = ceil_of(s.keys, panel) * panel;
  for (int64_t tiles = ceil_of(kGroupRows, s.rows); tiles > 0;
       tiles = tiles > 1 ? std::max<int64_t>(tiles / 4, 1) : 0) {
    s.group = tiles * s.rows;
    for (s.keys = most; s.keys > panel && !fits_in();) s.keys -= panel;
    if (fits_in()) return;
  }
}

AttentionSchedule schedule_with(int64_t rows, const Region& region, const AttentionView& view,
                                const TargetInfo& target) {
  const auto keys = region.stages[0].domain[static_cast<size_t>(view.key_axis)].constant();
  AttentionSchedule s;
  s.rows = rows;
  s.nv = vectors_of(keys.value_or(1 << 10), rows, target);
  s.nc = vectors_of(view.columns(region), rows, target);
  const int64_t panel = s.nv * target.lanes_f32();
  const int64_t bytes = 4 * (view.head_size(region) + view.columns(region));
  const auto l2 = static_cast<double>(target.l2_bytes);
  const double room = view.weight ? target.shares.attention_whole : target.shares.attention;
  if (keys && static_cast<double>(*keys * bytes) <= room * l2) {
    s.keys = std::max<int64_t>(*keys, 1);
  } else {
    const auto most =
        std::max<int64_t>(panel, static_cast<int64_t>(target.shares.attention_blocks * l2) / bytes / panel * panel);
    const int64_t blocks = keys ? ceil_of(*keys, most) : 1;
    s.keys = keys ? ceil_of(ceil_of(*keys, blocks), panel) * panel : most;
    s.group = ceil_of(kGroupRows, rows) * rows;
  }
  keep_within(s, region, view, target);
  cut_parts(s, region, view, target);
  return s;
}

}  // namespace

std::vector<Ranked<AttentionSchedule>> schedule_attention(const Region& region, const TargetInfo& target, size_t most) {
  const auto found = view_attention(region);
  const auto* view = std::get_if<AttentionView>(&found);
  if (!view) return {};
  const auto extent = region.stages[0].domain[static_cast<size_t>(view->row)].constant();
  std::vector<Ranked<AttentionSchedule>> schedules;
  for (const auto& [cycles, rows] : rows_by_time(extent, target, most)) {
    const AttentionSchedule schedule = schedule_with(rows, region, *view, target);
    if (!(view->weight && schedule.group)) schedules.push_back({cycles, schedule});
  }
  return schedules;
}

}  // namespace opfuse
