// A convolution of images or volumes as the pixel-lane skeleton sees it, and how it packs its input: lanes hold
// neighbouring pixels, so neither outputs nor groups are rounded up to whole vectors.
//
//   packed[plane tap][channel][phase][row][pitch]   rows of one band, zeros where they leave the image; a stride of s
//                                                   makes s*s phases, within which every tap moves by whole elements
//   result[output][phase][row * pitch + column]     a tap (r, s) of all of them is one shift of the packed rows
//
// The phases of results are those of a transposed convolution, whose rows are put together when they are stored.
#pragma once

#include <optional>

#include "kernel/spec.hpp"
#include "kernel/views.hpp"

namespace opfuse {

/// Phases of the result along one axis. Phase g of position p is the result at count * p - g + first, and its tap j has
/// the weights at count * j + g - missing: none for tap 0 of the first phases.
struct ResultPhases {
  int axis = -1;  ///< domain axis, -1: one phase
  int64_t count = 1, missing = 0, first = 0;
  int64_t before() const { return count - 1 - first; }  ///< results left out in front
};

/// One axis of the image: what slides over the data (tap -1: one tap), and where results go.
struct PixelDim : SlidingDim {
  int64_t taps = 1;
  int64_t positions = 1;  ///< of the window
  int64_t results = 1;    ///< extent of the result: at most positions * phases
  ResultPhases phases;
};

struct PixelView {
  int data = -1, weights = -1;                 ///< read numbers of the stage
  int channel = -1;                            ///< reduce axis, -1: one channel per group
  int64_t groups = 1, depth = 1, outputs = 1;  ///< channels and outputs of one group
  PixelDim planes, rows, columns;              ///< images have no planes (axis -1)
  int64_t channels() const { return groups * depth; }
  int64_t all_outputs() const { return groups * outputs; }
  int64_t taps() const { return planes.taps * rows.taps * columns.taps; }
  int64_t phases() const { return planes.phases.count * rows.phases.count * columns.phases.count; }
  bool plain() const { return planes.axis < 0 && phases() == 1; }  ///< an ordinary convolution of images
};

/// Stages with domain [n, o, phases.., p, q] or [n, o, phases.., d, p, q]; the region is as lowered (no axis dropped or
/// merged).
std::optional<PixelView> view_pixels(const Region& region);

/// What is left behind the sums: a map over the result [n, o, .., y, x] of `result(0)`, with the reads of the epilogue
/// where the result is. None where the epilogue reads elsewhere.
std::optional<Stage> result_stage(const Region& region, const PixelView& view);

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
  int64_t plane_taps = 1;
  int64_t stage_pitch = 1;  ///< elements of one output's results
  int64_t stage_outputs = 1;
  int64_t packed_elements() const { return (plane_taps * packed_channels * channel / lanes + 65) * lanes; }
  int64_t scratch_bytes() const { return 4 * (packed_elements() + stage_outputs * stage_pitch + 64 * lanes); }
};
PixelPacking pack_pixels(const PixelView& view, int64_t lanes, int64_t bands, bool all_groups);

/// Vectors of results of a band of so many rows.
int64_t result_vectors(const PixelView& view, const PixelPacking& packing, int64_t rows);

}  // namespace opfuse
