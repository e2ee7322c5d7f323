// Einstein summation, e.g. "bij,bjk->bik"; an ellipsis stands for broadcast batch axes.
#pragma once

#include <string>

#include "ops/declare.hpp"

namespace opfuse {

struct Einsum {
  struct Attrs {
    std::string equation;
    static void each(auto& s, auto&& field) { field("equation", s.equation); }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static Cost cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out);
};

}  // namespace opfuse
