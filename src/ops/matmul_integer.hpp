// Matrix product of codes, exact modulo 2^32: y = (a - a_zero) (b - b_zero) in i32, a and b of u8 or i8, shapes as
// those of matmul. A zero point is one for all, one for each row of a or column of b, or broadcasts to its operand.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

/// Inputs a, b, a_zero (optional), b_zero (optional).
struct MatMulInteger {
  struct Attrs {
    static void each(auto&, auto&&) {}
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static Cost cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out);

  /// The shape that zero points of operand `operand` (0 or 1) broadcast with: a vector belongs to rows of a.
  static Shape zero_shape(const Shape& zero, size_t operand);
};

}  // namespace opfuse
