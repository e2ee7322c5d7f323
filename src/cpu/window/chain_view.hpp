// Two stages as one kernel: a convolution, and a window (pooling, depthwise convolution) that alone reads it. The rows
// between them exist only in scratch, as many as the window needs at a time. Means of the result may follow
// (cpu/window/mean_view.hpp).
#pragma once

#include <string>
#include <variant>

#include "kernel/views.hpp"

namespace opfuse {

struct ChainView {
  ContractionView first;
  WindowView second;
  SlidingDim rows;   ///< of the second stage, over the rows of the first
  int64_t taps = 1;  ///< along them

  /// Rows of the first stage that `count` neighbouring rows of the second need, padding included.
  int64_t rows_for(int64_t count) const { return (count - 1) * rows.stride + (taps - 1) * rows.dilation + 1; }
};
std::variant<ChainView, std::string> view_chain(const Region& region);

}  // namespace opfuse
