// Where a window's taps read: output * stride + tap * dilation - pad.
#include "region/sliding.hpp"

#include <algorithm>

namespace opfuse {

IndexExpr window_index(const WindowAxis& window, int axis, int tap) {
  IndexExpr index;
  index.terms.push_back({window.stride, axis});
  index.terms.push_back({window.dilation, tap});
  index.offset = Dim(0) - window.pad_begin;
  return index;
}

bool leaves_input(const std::vector<WindowAxis>& windows) {
  return std::any_of(windows.begin(), windows.end(), [](const WindowAxis& w) {
    if (!(w.pad_begin == Dim(0))) return true;
    const Dim last = (w.out - Dim(1)) * Dim(w.stride) + Dim((w.kernel - 1) * w.dilation);
    if (last.is_constant() && w.in.is_constant()) return last.value() >= w.in.value();
    return !w.inside();
  });
}

}  // namespace opfuse
