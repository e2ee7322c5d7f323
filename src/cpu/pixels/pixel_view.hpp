// A two-dimensional convolution as the pixel-lane skeleton sees it, and how it packs its input: lanes hold neighbouring
// pixels, so neither outputs nor groups are rounded up to whole vectors.
//
//   packed[channel][phase][row][pitch]    rows of one band, zeros where they leave the image; a stride of s makes s*s
//                                         phases, within which every tap moves by whole elements
//   result[output][row * pitch + column]  a tap (r, s) of all of them is one shift of the packed rows
#pragma once

#include <optional>

#include "kernel/spec.hpp"
#include "kernel/views.hpp"

namespace opfuse {

struct PixelView {
  int data = -1, weights = -1;                 ///< read numbers of the stage
  int channel = -1;                            ///< reduce axis, -1: one channel per group
  int64_t groups = 1, depth = 1, outputs = 1;  ///< channels and outputs of one group
  SlidingDim rows, columns;                    ///< of the data; tap -1: one tap
  int64_t row_taps = 1, column_taps = 1;       ///< extents of the taps
  int64_t height = 1, width = 1;               ///< of the result
  int64_t channels() const { return groups * depth; }
  int64_t all_outputs() const { return groups * outputs; }
};

/// Stages with domain [n, o, p, q]; the region is as lowered (no axis dropped or merged).
std::optional<PixelView> view_pixels(const Region& region);

/// Phases of a stride that some tap reads, ascending: multiples of the step that dilation and stride share.
std::vector<int64_t> phases(const SlidingDim& dim, int64_t taps);
/// Where a tap reads: number of its phase among those, and elements further on within it.
struct TapPlace {
  int64_t phase, shift;
};
TapPlace place_of_tap(const SlidingDim& dim, int64_t taps, int64_t tap);

/// Sizes that follow from the view and the number of bands.
struct PixelPacking {
  int64_t lanes = 1;
  int64_t band_rows = 1;    ///< of results, at most
  int64_t phase_rows = 1;   ///< packed rows of a phase
  int64_t pitch = 1;        ///< elements from row to row
  int64_t row_vectors = 1;  ///< vectors that write one packed row, its zeros included
  int64_t row_phases = 1, column_phases = 1;
  int64_t plane = 1;    ///< elements of a phase
  int64_t channel = 1;  ///< elements of a channel
  int64_t packed_channels = 1;
  int64_t stage_pitch = 1;  ///< elements of one output's results
  int64_t stage_outputs = 1;
  int64_t packed_elements() const { return (packed_channels * channel / lanes + 65) * lanes; }
  int64_t scratch_bytes() const { return 4 * (packed_elements() + stage_outputs * stage_pitch + 64 * lanes); }
};
PixelPacking pack_pixels(const PixelView& view, int64_t lanes, int64_t bands, bool all_groups);

/// Vectors of results of a band of so many rows.
int64_t result_vectors(const PixelView& view, const PixelPacking& packing, int64_t rows);

}  // namespace opfuse
