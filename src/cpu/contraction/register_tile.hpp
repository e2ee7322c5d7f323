// The register tile of a contraction, from extents and the target alone.
//
// A tile of `w` pixels and `v` vectors of output channels needs, per step of the reduction,
//   w*v multiply-adds on 2 units, w + v loads on 2 ports, v vectors of weights from L2, and at least one
//   add latency for the whole tile;
// accumulators, v weights and one broadcast must fit in the registers. The tile with the least time over
// all pixels and channels wins. Where half a vector holds the last channels, two pixels share it: w*(v-1) + w/2
// multiply-adds and accumulators, and one broadcast more.
#pragma once

#include "kernel/fastest.hpp"
#include "kernel/views.hpp"
#include "target/target.hpp"

namespace opfuse {

struct RegisterTile {
  int64_t vectors = 1, width = 1;  ///< vectors: of weights, of all sums together
  bool half = false;               ///< pixels share the last of several vectors in pairs
};

/// Half a vector of so many lanes holds the last of so many channels.
bool ends_in_half(int64_t channels, int64_t lanes, const TargetInfo& target);
/// Half a vector of weights may meet two pixels: a product is one instruction.
bool shares_vectors(const ElementTypes& types, const TargetInfo& target);

/// `kept`: registers that the tile must leave free.
bool fits(const RegisterTile& tile, const TargetInfo& target, int64_t kept = 0);

/// Pixels a tile may take; a symbolic extent is taken for a long one, no axis (-1) for one pixel.
int64_t pixel_count(const Stage& stage, int axis);

/// Widths of the `most` fastest tiles of `vectors` vectors over a row of `pixels`; cycles of a step of the reduction
/// over the row. `kept`: registers that the tile must leave free; `half`: as in RegisterTile.
std::vector<Ranked<int64_t>> widths_by_time(int64_t pixels, int64_t vectors, const TargetInfo& target, int64_t kept,
                                            bool half, size_t most);

/// Rows of the tile's width that one tile can hold, at most `rows`.
int64_t tallest(int64_t rows, const RegisterTile& tile, const TargetInfo& target, int64_t kept = 0);

/// This block of weights and the next one, fetched meanwhile, stay in L2.
bool two_blocks_fit(int64_t block_bytes, const TargetInfo& target);

struct TileProblem {
  int64_t channels = 0;  ///< of the output
  int64_t pixels = 1;    ///< of a row
  int64_t rows = 1;      ///< that may share a tile
  int64_t sums = 1;      ///< of the same data, each with its weights
  bool grouped = false;  ///< channels of a group, more of them follow
  ElementTypes types{};

  /// Pixels may share the last vector of channels.
  bool half(const TargetInfo& target) const;
};
/// Cycles of one step of the reduction over all pixels and channels.
double tile_cycles(const TileProblem& problem, const RegisterTile& tile, const TargetInfo& target);
RegisterTile choose_tile(const TileProblem& problem, const TargetInfo& target);

}  // namespace opfuse
