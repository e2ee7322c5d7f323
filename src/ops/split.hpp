// Cuts a tensor along one axis into as many parts as the node has outputs.
// Sizes: the `split` operand, else the attribute, else equal parts (the last one smaller, opset 18).
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

/// Inputs x, split (optional).
struct Split {
  struct Attrs {
    int64_t axis = 0;
    int64_t num_outputs = 0;  ///< opset 18; 0: the number of outputs
    std::vector<int64_t> split;
    static void each(auto& s, auto&& field) {
      field("axis", s.axis);
      field("num_outputs", s.num_outputs);
      field("split", s.split);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

}  // namespace opfuse
