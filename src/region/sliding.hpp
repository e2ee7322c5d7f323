// Index maps of sliding windows, shared by convolution and pooling.
#pragma once

#include "ops/window.hpp"
#include "region/lowering.hpp"

namespace opfuse {

/// stride * output + dilation * tap - pad, for spatial axis `axis` of the domain and reduce axis `tap`.
IndexExpr window_index(const WindowAxis& window, int axis, int tap);

/// True when some tap may leave the input, so that reads must be guarded.
bool leaves_input(const std::vector<WindowAxis>& windows);

}  // namespace opfuse
