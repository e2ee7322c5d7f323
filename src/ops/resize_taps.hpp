// Linear and cubic resampling of one axis as sums of taps: y[o] = sum_k weight[o][k] * x[position[o][k]].
#pragma once

#include <vector>

#include "ops/resize.hpp"

namespace opfuse {

struct ResizeTaps {
  int64_t count = 0;               ///< taps per result, the same for all
  std::vector<int64_t> positions;  ///< [o * count + k], inside the axis
  std::vector<double> weights;
};

/// Of an axis that is resized; mode linear or cubic, with or without antialiasing.
ResizeTaps resize_taps(const Resize::Attrs& attrs, const ResizeAxis& axis);

}  // namespace opfuse
