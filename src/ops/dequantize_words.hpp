// Weights of a matrix product as kernels read them: unsigned codes of 2, 4 or 8 bits in words of 32, the first of them
// in the lowest bits, with a scale (and zero point) for each block of rows.
//   y[k, n] = (code[k, n] - zero[k / block, n]) * scale[k / block, n]
//   code[k, n] = words[k / unit, n] >> bits * (k mod unit), its last bits; unit = 32 / bits
// Files have none, and the registry does not list it: shape/pack_codes.cpp makes it of DequantizeLinear.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

/// Inputs words [ceil(depth / unit), N] of i32, scale [ceil(depth / block), N], zero of u8, as scale (optional).
struct DequantizeWords {
  struct Attrs {
    int64_t depth = 0;       ///< rows
    int64_t bits = 4;        ///< of a code
    int64_t block_size = 0;  ///< rows that share a scale, whole words
    int64_t zero = 0;        ///< zero point where there is no operand
    static void each(auto& s, auto&& field) {
      field("depth", s.depth);
      field("bits", s.bits);
      field("block_size", s.block_size);
      field("zero", s.zero);
    }
    int64_t unit() const { return 32 / bits; }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

const OpInfo* dequantize_words_op();

}  // namespace opfuse
