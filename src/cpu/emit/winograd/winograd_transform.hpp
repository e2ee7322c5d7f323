// The one-dimensional transforms of F(tile,3) on registers, pairs of points +-p sharing their even and odd parts.
#pragma once

#include <vector>

#include "cpu/emit/kernel.hpp"

namespace opfuse::cpu {

using Line = std::vector<Value*>;

/// points(tile) values -> data_matrix times them.
Line transform_data(Kernel& k, int64_t tile, bool codes, const Line& d);
/// points(tile) values -> `tile` results, result_matrix times them.
Line transform_result(Kernel& k, int64_t tile, bool codes, const Line& m);

}  // namespace opfuse::cpu
