// The k largest (or smallest) elements along an axis and their indices; equal elements: lower index first.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

/// Inputs x, k (before opset 10 `k` is an attribute). Outputs values, indices.
struct TopK {
  struct Attrs {
    int64_t axis = -1;
    int64_t k = 0;  ///< when there is no operand
    bool largest = true;
    bool sorted = true;
    static void each(auto& s, auto&& field) {
      field("axis", s.axis);
      field("k", s.k);
      field("largest", s.largest);
      field("sorted", s.sorted);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

}  // namespace opfuse
