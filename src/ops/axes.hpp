// Axis numbers as ONNX writes them: negative ones count from the end.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/declare.hpp"

namespace opfuse {

/// `axis` in [0, rank). E::bad_attribute names `what` when it is outside [-rank, rank).
size_t normalize_axis(int64_t axis, size_t rank, std::string_view what = "axis");
/// All of them, ascending. E::bad_attribute for repeated ones.
std::vector<size_t> normalize_axes(const std::vector<int64_t>& axes, size_t rank, std::string_view what = "axes");

}  // namespace opfuse
