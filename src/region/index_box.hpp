// Constant indices that are affine in their coordinates. Of a scatter, updates may fill a box of the result:
// y[.., start + step * j, ..] for j of one axis of the updates.
#pragma once

#include <optional>
#include <vector>

#include "tensor/tensor.hpp"

namespace opfuse {

/// Where the updates lie along one dimension of the result: at start + step * (their coordinate along `axis`), or at
/// `start` alone (axis -1).
struct BoxDim {
  int64_t start = 0, step = 1;
  int axis = -1;
  bool operator==(const BoxDim&) const = default;
};

/// Indices as they are counted from 0; nothing where one is outside [-extent, extent).
std::optional<std::vector<int64_t>> counted_from_zero(const Tensor& indices, size_t first, size_t stride,
                                                      int64_t extent);

/// `values` over axes of `sizes`, as one of the axes steps it up; nothing when it is not so.
std::optional<BoxDim> box_dim(const std::vector<int64_t>& values, const std::vector<int64_t>& sizes);

/// start + sum of step[axis] * coordinate
struct AffineIndices {
  int64_t start = 0;
  std::vector<int64_t> steps;
};

/// What constant indices are at every coordinate: windows, strides, reversals, spelled out element by element. Of every
/// `stride`th element from `first` on, which `sizes` number. Nothing where they are not so, or one is outside
/// [-extent, extent).
std::optional<AffineIndices> affine_indices(const Tensor& indices, size_t first, size_t stride,
                                            const std::vector<int64_t>& sizes, int64_t extent);

/// No two updates of `sizes` meet: every axis of more than one is that of exactly one dimension.
bool fills_box(const std::vector<BoxDim>& dims, const std::vector<int64_t>& sizes);

}  // namespace opfuse
