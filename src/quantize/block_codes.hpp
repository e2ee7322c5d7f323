// A matrix of weights as symmetric codes of 8 or 4 bits, a scale for each block along its depth and column.
#pragma once

#include <span>

#include "tensor/tensor.hpp"

namespace opfuse::quantization {

struct BlockOptions {
  DType type = DType::i8;  ///< codes: i8 (-127 to 127) or i4 (-8 to 7)
  int64_t block = 0;       ///< elements along the depth that share a scale, the last block may be shorter; 0: all
  size_t depth_axis = 0;   ///< of the matrix: what the product adds up over
  int threads = 0;         ///< the result does not depend on them
  /// Of what the product multiplies: mean squares along the depth. Errors count that much; empty: alike.
  std::span<const double> powers{};
};

struct BlockCodes {
  Tensor codes;         ///< as the matrix
  Tensor scales;        ///< f32 [C] of whole columns, else as the matrix with ceil(depth / block) along `depth_axis`
  double sqnr = 0;      ///< dB; infinite where the codes are exact
  int64_t clipped = 0;  ///< weights beyond the largest code
  double noise = 0;     ///< sum of squared errors, times the powers: what the product's results are to expect
};

/// Codes are the nearest, ties to even. Of kClips clips from the largest weight down each block takes the one of least
/// squared error, of equal ones the largest. A block of zeros has scale 1. `weights` are f32, rank 2 and finite.
BlockCodes block_codes(const Tensor& weights, const BlockOptions& options);

inline constexpr int kClips = 40;  ///< 1, 63/64 ... 25/64 of the largest weight

}  // namespace opfuse::quantization
