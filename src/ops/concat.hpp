// Joins tensors along one axis.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Concat {
  struct Attrs {
    int64_t axis = 0;
    static void each(auto& s, auto&& field) { field("axis", s.axis); }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static std::optional<std::vector<Dim>> dims(const Attrs& attrs, const Inference& in);
};

}  // namespace opfuse
