// y has a new axis of length depth: on_value where its coordinate equals the index, else off_value.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

/// Inputs indices, depth, values = [off_value, on_value].
struct OneHot {
  struct Attrs {
    int64_t axis = -1;
    static void each(auto& s, auto&& field) { field("axis", s.axis); }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

}  // namespace opfuse
