// Slices along an axis, or elements of the flat tensor, where a condition is true.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Compress {
  struct Attrs {
    std::vector<int64_t> axis;         ///< one, or none: of the flat tensor
    std::vector<std::string> defines;  ///< how many there are
    static void each(auto& s, auto&& field) { field("axis", s.axis), field("defines", s.defines); }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

}  // namespace opfuse
