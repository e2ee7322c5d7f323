// Winograd F(h x w, 3x3) as an algorithm of a contraction stage: the stages it fits and the layout of its weights,
// which carries the choice to the schedule and the emitter.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "codegen/views.hpp"
#include "target/target.hpp"
#include "tensor/layout.hpp"

namespace opfuse {

struct WinogradTile {
  int64_t h = 4, w = 4;
  bool operator==(const WinogradTile&) const = default;
};

/// A 3x3 convolution of stride 1: rows and columns of the image, one tile axis each.
struct WinogradView {
  ContractionView contraction;
  SlidingDim row, column;
  std::vector<int> batch;  ///< domain axes that are neither channels nor image
};
/// The text says why a stage is none.
std::variant<WinogradView, std::string> view_winograd(const Region& region, int stage);

/// Weights as the kernel reads them, `vectors` vectors of output channels per block:
///   [O/block][points of the tile][C][block]
Layout winograd_weights(const WinogradTile& tile, int64_t vectors, const TargetInfo& target);

/// Vectors of output channels per block; 0: no vector of them lies inside a group.
int64_t winograd_vectors(const Stage& stage, const WinogradView& view, const WinogradTile& tile,
                         const TargetInfo& target);

/// What the cost model knows of a convolution; a symbolic batch counts as 1.
struct WinogradWork {
  WinogradTile tile;
  int64_t points = 36, channels = 1, channel_vectors = 1, blocks = 1, vectors = 1, tiles = 1, lanes = 16;
  double input_cycles = 0, output_cycles = 0;                                      ///< per tile and vector of channels
  int64_t block_bytes() const { return points * channels * vectors * lanes * 4; }  ///< of weights
};
WinogradWork winograd_work(const Stage& stage, const WinogradView& view, const WinogradTile& tile, int64_t vectors,
                           const TargetInfo& target);

/// Cycles of one step over the channels of a register tile, and the width of the fastest one for a chunk.
double winograd_step_cycles(int64_t width, int64_t vectors);
int64_t winograd_width(int64_t tiles, int64_t vectors, const TargetInfo& target);

/// Floats of a part's scratch for `capacity` tiles; the emitter places them by the same numbers.
struct WinogradScratch {
  int64_t data_point = 0, sum_point = 0;  ///< between points of transformed data, of products
  int64_t bytes = 0;
};
WinogradScratch winograd_scratch(const WinogradTile& tile, int64_t channels, int64_t block, int64_t lanes,
                                 int64_t capacity);

/// How a launch is cut, and what a part costs.
struct WinogradChoice {
  int64_t parts_o = 1, parts_p = 1;  ///< pieces of the output channels, of the tiles
  int64_t chunk = 1;                 ///< tiles in scratch at a time
  int64_t width = 1;                 ///< of them in registers
  double cycles = 0;                 ///< of arithmetic in a part
  double streamed = 0;               ///< bytes of weights a part reads
  int64_t scratch_bytes = 0;
};
inline constexpr double kL3BytesPerCycle = 9.5, kMemoryBytesPerCycle = 12;  ///< of one core; of all cores together

WinogradChoice choose_winograd_parts(const WinogradWork& work, const TargetInfo& target);
double winograd_cycles(const WinogradWork& work, const WinogradChoice& choice, int64_t threads);

}  // namespace opfuse
