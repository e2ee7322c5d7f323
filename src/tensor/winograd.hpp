// Winograd's minimal filtering F(m,3): m results of a 3-tap filter from m + 2 products instead of 3 m,
//
//   y = result * ((filter * g) . (data * d))          in two dimensions: from both sides
//
// by evaluation at points 0, +-p .. and infinity. The point pairs below keep every number of `data` and `result`
// exact in fp32 and the growth of rounding errors small (docs/accuracy.md).
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/tensor.hpp"

namespace opfuse::winograd {

using Matrix = std::vector<std::vector<double>>;

/// The pairs +-p among the points of F(tile,3), tile 2 or 4; the others are 0 and infinity.
std::vector<double> point_pairs(int64_t tile);
inline int64_t points(int64_t tile) { return tile + 2; }

Matrix filter_matrix(int64_t tile);  ///< points x 3
Matrix filter_matrix(const std::vector<double>& pairs);
Matrix data_matrix(int64_t tile);    ///< points x points
Matrix result_matrix(int64_t tile);  ///< tile x points

/// One 3x3 filter `g` into points x points numbers `u`, computed in double, rounded once.
void transform_filter(const Matrix& height, const Matrix& width, const float* g, float* u);

/// [O,C,3,3] -> [O,C,tile_h+2,tile_w+2], computed in double, rounded once.
Tensor transform_filters(const Tensor& filters, int64_t tile_h, int64_t tile_w);

}  // namespace opfuse::winograd
