// Where a window's taps read: output * stride + tap * dilation - pad.
#include "region/sliding.hpp"

namespace opfuse {

IndexExpr window_index(const WindowAxis& window, int axis, int tap) {
  IndexExpr index;
  index.terms.push_back({window.stride, axis});
  index.terms.push_back({window.dilation, tap});
  index.offset = Dim(0) - window.pad_begin;
  return index;
}

bool leaves_input(const std::vector<WindowAxis>& windows) {
  for (const WindowAxis& w : windows) {
    if (!(w.pad_begin == Dim(0))) return true;
    const Dim last = (w.out - Dim(1)) * Dim(w.stride) + Dim((w.kernel - 1) * w.dilation);
    if (w.pad_end == Dim(0) && !last.is_constant()) continue;  // rounded down: the window always fits
    if (!last.is_constant() || !w.in.is_constant() || last.value() >= w.in.value()) return true;
  }
  return false;
}

}  // namespace opfuse
