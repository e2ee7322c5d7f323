// The pixel axis cut into register tiles. Where a window leaves the data at the left or right edge, the
// tiles there are variants of their own in which invalid (pixel, tap) pairs do not appear; tiles whose
// pixels are all valid share one loop.
#pragma once

#include "cpu/emit/address.hpp"
#include "kernel/views.hpp"

namespace opfuse::cpu {

/// Equal tiles: pixels [begin, end) in steps of width.
struct TileRun {
  Value* begin = nullptr;
  Value* end = nullptr;
  int64_t width = 1;
  std::vector<uint64_t> valid;   ///< by tap: bit t says that pixel t is inside; empty: all are
  bool clip = false;             ///< taps of the (single) pixel are clipped at run time
  int64_t first = 0, count = 0;  ///< tile numbers, when the extent is constant
  Value* before = nullptr;       ///< tiles of the runs before it, when the extent is open
};

/// Taps [low, high) of a sliding dimension that stay inside at output coordinate `at`.
struct TapRange {
  Value* low;
  Value* high;
};
TapRange clip_taps(Kernel& k, const SlidingDim& dim, const Dim& taps, Value* at);

/// Some position of the dimension may lie outside the data.
bool may_leave(const Stage& stage, const SlidingDim& dim);
/// i1: the coordinates of all dimensions without taps (windows of one row, padded) lie inside the data, but for that of
/// axis `pixel`, whose tiles know.
Value* inside_without_taps(Kernel& k, const Stage& stage, const std::vector<SlidingDim>& sliding, const Env& env,
                           int pixel);

/// `sliding`: the dimension the pixel axis moves along, null when windows cannot leave the data. `vectors` of outputs
/// in a tile decide how an open extent is cut.
std::vector<TileRun> cut_tiles(Kernel& k, const Dim& pixels, int64_t width, const SlidingDim* sliding, int64_t taps,
                               int64_t vectors = 1);
/// Pixels [begin, begin + count) of an axis, of which all are inside the data.
std::vector<TileRun> cut_band(Kernel& k, Value* begin, Value* count, int64_t width, int64_t vectors);
/// Tiles of a constant extent.
int64_t tile_count(const std::vector<TileRun>& runs);
/// Tiles of an open one.
Value* open_tile_count(Kernel& k, const std::vector<TileRun>& runs);

}  // namespace opfuse::cpu
