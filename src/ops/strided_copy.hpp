// Moving elements without looking at them: transpose, expand and everything else that is a strided read.
#pragma once

#include <cstdint>
#include <vector>

#include "base/fail.hpp"
#include "tensor/tensor.hpp"

namespace opfuse {

/// Dense tensor of `sizes` whose element at coordinates c is in[offset + sum c[d] * strides[d]] (in elements).
/// All reads must lie inside `in`. E::unsupported_dtype for strings.
Tensor strided_copy(const Tensor& in, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                    int64_t offset = 0);

/// Calls body(T{}) with the unsigned integer type T as wide as an element. E::unsupported_dtype for strings.
template <class F>
void with_element_type(DType dtype, F&& body) {
  switch (byte_size(dtype)) {
    case 1:
      return body(uint8_t{});
    case 2:
      return body(uint16_t{});
    case 4:
      return body(uint32_t{});
    case 8:
      return body(uint64_t{});
    default:
      throw fail(E::unsupported_dtype, "elements of type {} cannot be moved", name_of(dtype));
  }
}

/// Row-major strides of a dense tensor.
std::vector<int64_t> dense_strides(const std::vector<int64_t>& sizes);

}  // namespace opfuse
