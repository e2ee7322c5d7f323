// What a Winograd convolution costs, and how its launch is best cut: from extents and the target alone.
#pragma once

#include "cpu/winograd/winograd.hpp"
#include "kernel/fastest.hpp"

namespace opfuse {

/// What the cost model knows of a convolution; a symbolic batch counts as 1.
struct WinogradWork {
  WinogradTile tile;
  bool codes = false;
  int64_t points = 36, words = 1, channel_vectors = 1;  ///< of the channels of one group
  int64_t groups = 1, blocks = 1, vectors = 1, tiles = 1, lanes = 16;
  double input_cycles = 0, output_cycles = 0;                                   ///< per tile and vector of channels
  int64_t block_bytes() const { return points * words * vectors * lanes * 4; }  ///< of weights
  int64_t weight_bytes() const { return blocks * block_bytes(); }
};
WinogradWork winograd_work(const Stage& stage, const WinogradView& view, const WinogradTile& tile, int64_t vectors,
                           const TargetInfo& target);

/// Vectors of output channels per block; 0: no vector of them lies inside a group.
int64_t winograd_vectors(const Stage& stage, const WinogradView& view, const WinogradTile& tile,
                         const TargetInfo& target);

/// Cycles of one step over the words of channels of a register tile, and the width of the fastest one for a chunk.
double winograd_step_cycles(int64_t width, int64_t vectors, bool codes, const TargetInfo& target);
int64_t winograd_width(int64_t tiles, int64_t vectors, bool codes, const TargetInfo& target);

/// How a launch is cut, and what a part costs.
struct WinogradChoice {
  int64_t parts_o = 1, parts_p = 1;  ///< pieces of the output channels, of the tiles
  int64_t chunk = 1;                 ///< tiles in scratch at a time
  int64_t width = 1;                 ///< of them in registers
  int64_t chunks = 1;                ///< of a part: the times it reads its weights
  int64_t part_bytes = 0;            ///< of weights of a part's blocks
  int64_t held_bytes = 0;            ///< of transformed data of a chunk
  int64_t scratch_bytes = 0;
  double cycles = 0;       ///< of arithmetic in a part
  double data_cycles = 0;  ///< of reading transformed data that do not stay in L2
};
WinogradChoice cost_winograd_part(const WinogradWork& work, int64_t parts_o, int64_t parts_p, int64_t chunk,
                                  const TargetInfo& target);

/// Of a launch whose weights come from memory.
double winograd_cycles(const WinogradWork& work, const WinogradChoice& choice, const TargetInfo& target,
                       int64_t threads);

/// The `most` cuts that are best for one to four threads, and for `threads` if there are more.
std::vector<Ranked<WinogradChoice>> winograd_choices(const WinogradWork& work, const TargetInfo& target,
                                                     int64_t threads, size_t most);

}  // namespace opfuse
