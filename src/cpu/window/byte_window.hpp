// Depthwise sums of codes by instructions that multiply four bytes at once. Four neighbouring pixels of a row are one
// load; their bytes, put in the order of the channels, are a word of four pixels per channel:
//
//   memory   p0 [c0 c1 ..] p1 [c0 c1 ..] p2 [..] p3 [..]     word of c0: p0 p1 p2 p3
//
// Words begin every `grid` pixels, so that neighbouring outputs share them: an output whose first tap is `shift` pixels
// behind its word has weights that are shifted as far. Three taps, stride 1, grid 2:
//
//   output 0: k0 k1 k2 0       output 1: 0 k0 k1 k2       both of word 0
#pragma once

#include <optional>

#include "kernel/spec.hpp"
#include "kernel/views.hpp"

namespace opfuse {

inline constexpr int64_t kPixelsOfWord = 4;

struct ByteWindow {
  int weights = -1;        ///< read
  DType data = DType::u8;  ///< or i8
  SlidingDim pixel;        ///< with a tap
  SlidingDim row;          ///< the same; without a tap there are no rows
  int64_t taps = 1, row_taps = 1;
  int64_t grid = 1;

  bool has_rows() const { return row.tap >= 0; }
  int64_t shift(int64_t output) const { return output * pixel.stride % grid; }
  int64_t words(int64_t shift) const { return (taps + shift + kPixelsOfWord - 1) / kPixelsOfWord; }
};

/// Nothing where the window is another, or its operands lie in another way.
std::optional<ByteWindow> byte_window(const Region& region, const WindowView& view,
                                      const std::vector<ParamLayout>& layouts, const TargetInfo& target);

}  // namespace opfuse
