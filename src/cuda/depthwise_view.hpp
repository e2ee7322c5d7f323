// A depthwise convolution in 16 bits, channels last, as a window that slides along a row of the image.
#pragma once

#include <optional>

#include "cuda/stage.hpp"

namespace opfuse::cuda {

struct DepthwiseView {
  int data = -1, weights = -1;        ///< reads
  int channel = -1, column = -1;      ///< domain axes
  int row_tap = -1, column_tap = -1;  ///< reduce axes
  size_t column_dim = 0;              ///< of the data
  int64_t stride = 1, dilation = 1, taps = 1, columns = 1;
  /// Columns of the data that `count` neighbouring results need.
  int64_t span(int64_t count) const { return (count - 1) * stride + (taps - 1) * dilation + 1; }
};

/// Of the region's first stage. Empty: it is none, or does not lie so that eight channels are 16 bytes.
std::optional<DepthwiseView> view_depthwise(const Region& region, const std::vector<ParamLayout>& layouts);

/// Whether a region of one stage could be one, were its operands to lie so.
bool resembles_depthwise(const Region& region);

}  // namespace opfuse::cuda
