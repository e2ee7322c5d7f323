// Weights of a product as codes in words, with a scale for each block of rows (ops/dequantize_words.hpp):
//   sum over k of x[k] * f32((words[k / unit, n] >> bits * (k % unit) & mask) - zero[k / block, n]) * scale[..]
// A contraction sees them as weights of f32 [K, N] that its kernel decodes, in registers or a block at a time.
#pragma once

#include <optional>

#include "region/region.hpp"

namespace opfuse {

struct CodedWeights {
  int64_t bits = 4;
  int64_t block = 0;            ///< rows that share a scale; all of them: the depth
  int words = -1, scales = -1;  ///< read numbers of the stage
  int zeros = -1;               ///< -1: `zero` is that of all
  int64_t zero = 0;
  IndexMap map;  ///< of the weights that the words stand for
  bool operator==(const CodedWeights&) const = default;

  int64_t unit() const { return 32 / bits; }  ///< codes of a word
};

/// The stage's only sum is one of products with such weights.
std::optional<CodedWeights> coded_weights(const Region& region, const Stage& stage);

/// The region as if they were constants of f32, under the same read number.
Region with_plain_weights(const Region& region, int stage, const CodedWeights& coded);

}  // namespace opfuse
