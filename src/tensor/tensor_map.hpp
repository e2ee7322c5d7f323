// A tensor as the copy engine of a GPU reads and writes it (CUtensorMap), before it has an address: a box of it is
// copied by one instruction, what lies outside is zero, or stays. Dimensions are innermost first.
#pragma once

#include <vector>

#include "tensor/dim.hpp"
#include "tensor/dtype.hpp"

namespace opfuse {

struct TensorMap {
  int buffer = -1;           ///< of the launch
  DType dtype = DType::f16;  ///< of 2 or 4 bytes
  int64_t offset = 0;        ///< bytes of its first element in the buffer
  std::vector<Dim> sizes;    ///< elements; 1 to 5 dimensions, of images 3 to 5
  std::vector<Dim> strides;  ///< bytes from one element to the next, of each dimension but the first
  /// Elements of the box in each dimension. Of an image two: channels, and pixels, which are taken row by row.
  std::vector<int64_t> box;
  std::vector<int64_t> steps;  ///< of an image: from one pixel to the next, by dimension
  /// Of an image: the first and the last place of the window's corner, from the first and the last pixel of each
  /// dimension but the first and the last. Empty: no image.
  std::vector<int64_t> low, high;
  bool image() const { return !low.empty(); }
  bool operator==(const TensorMap&) const = default;
};

}  // namespace opfuse
