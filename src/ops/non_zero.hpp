// Coordinates of the non-zero elements, [rank, count], in row-major order. The count is known only for constants.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct NonZero {
  struct Attrs {
    static void each(auto&, auto&&) {}
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

}  // namespace opfuse
