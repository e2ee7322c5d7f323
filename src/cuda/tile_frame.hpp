// What the skeletons of contractions have in common: blocks stand for tiles of the result, tiles have edges.
#pragma once

#include "cuda/stage.hpp"
#include "cuda/tile_view.hpp"

namespace opfuse::cuda {

struct TileFrame {
  StageText& s;
  const TileView& view;
  int64_t tile_m = 0, tile_n = 0, tile_k = 0;
  Dim m = s.elements(view.m), n = s.elements(view.n), k = s.elements(view.k);

  Dim blocks() const { return ceil_div(m, Dim(tile_m)) * ceil_div(n, Dim(tile_n)) * s.elements(view.batch); }

  /// Declares m0 and n0, where the block's tile begins, and the batch's coordinates. The axis that neighbouring blocks
  /// step along comes first.
  enum class First { rows, columns };
  void place(First first, StageText::Point& point) const;
  /// The same where `tile` is not the block's number.
  void place(First first, const Dim& tile, StageText::Point& point) const;

  /// When element `at` of rows or columns (`extent` of them, in tiles of `size`) and `at_k` lie inside the problem;
  /// empty: always.
  std::string inside(const Dim& at, const Dim& extent, int64_t size, const Dim& at_k) const;
};

}  // namespace opfuse::cuda
