// Matrix product with NumPy's rules: batch dimensions broadcast, a vector operand is a row (left) or a column (right)
// whose unit dimension is removed from the result.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct MatMul {
  struct Attrs {
    static void each(auto&, auto&&) {}
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static Cost cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out);
};

}  // namespace opfuse
