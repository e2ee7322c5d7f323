// Winograd F(h x w, 3x3) as an algorithm of a contraction stage: the stages it fits and the layout of its weights,
// which carries the choice to the schedule and the emitter.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "kernel/views.hpp"
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

  /// Sums of codes, by whole numbers (tensor/winograd_codes.hpp): transformed data and weights are i16, products i32.
  bool codes() const { return contraction.types.sum == DType::i32; }
};
/// The name of the skeleton.
inline constexpr const char* kWinogradName = "winograd";

/// The text says why a stage is none.
std::variant<WinogradView, std::string> view_winograd(const Region& region, int stage);

/// Weights as the kernel reads them, `vectors` vectors of output channels per block:
///   [O/block][points of the tile][C][block]           of codes: [O/block][points of the tile][C/2][block][2]
Layout winograd_weights(const WinogradView& view, const WinogradTile& tile, int64_t vectors, const TargetInfo& target);

/// Channels of a word of transformed data or weights: an f32, or two i16.
inline int64_t winograd_unit(bool codes) { return codes ? 2 : 1; }

/// Registers that products of codes take besides sums, weights and data: those that wait for their sum.
inline int64_t winograd_kept(bool codes) { return codes ? 2 : 0; }

/// Words of channels of one unrolled step of the products, which also fetches a share of the next weights.
inline constexpr int64_t kWinogradUnrolled = 4;

/// Words of a part's scratch for `capacity` tiles; the emitter places them by the same numbers.
struct WinogradScratch {
  int64_t data_point = 0, sum_point = 0;  ///< between points of transformed data, of products
  int64_t bytes = 0;
};
WinogradScratch winograd_scratch(const WinogradTile& tile, int64_t channel_vectors, bool codes, int64_t block,
                                 int64_t capacity, const TargetInfo& target);

}  // namespace opfuse
