// A depthwise window and the rows of channels behind it: a convolution and the LayerNorm that alone reads it. Two
// stages; what the first computes for a pixel is a row of the second.
#pragma once

#include <string>
#include <variant>

#include "region/region.hpp"

namespace opfuse::cuda {

struct WindowRowsView {
  int channel = 0;      ///< domain axis of the window, which rows run along
  int row_channel = 0;  ///< domain axis of the rows' results, which does too
  int reduced = 0;      ///< the rows' reduce axis
  int64_t channels = 0;
  std::vector<int> row_axes;  ///< by domain axis of the window: that of the rows; -1: none, the extent is 1
};
std::variant<WindowRowsView, std::string> view_window_rows(const Region& region);

/// Two stages, a window and rows.
bool resembles_window_rows(const Region& region);

}  // namespace opfuse::cuda
