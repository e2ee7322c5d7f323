// Copies whose source coordinate is a table per axis: pad, tile, nearest resize.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/tensor.hpp"

namespace opfuse {

/// y of sizes table[d].size(): y[c] = x[table[0][c0], table[1][c1], ...], or the one element of `fill` where a table
/// says -1. `fill` (same dtype) may be null when no table does.
Tensor table_copy(const Tensor& x, const std::vector<std::vector<int64_t>>& table, const Tensor* fill);

/// The table 0, 1, ..., size - 1.
std::vector<int64_t> identity_table(int64_t size);

}  // namespace opfuse
