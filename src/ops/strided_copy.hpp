// Moving elements without looking at them: transpose, expand and everything else that is a strided read.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/tensor.hpp"

namespace opfuse {

/// Dense tensor of `sizes` whose element at coordinates c is in[offset + sum c[d] * strides[d]] (in elements).
/// All reads must lie inside `in`. E::unsupported_dtype for strings.
Tensor strided_copy(const Tensor& in, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                    int64_t offset = 0);

/// Row-major strides of a dense tensor.
std::vector<int64_t> dense_strides(const std::vector<int64_t>& sizes);

}  // namespace opfuse
