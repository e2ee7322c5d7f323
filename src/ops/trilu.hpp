// Upper or lower triangle of the last two axes, the rest is zero. Inputs x, k (optional diagonal).
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Trilu {
  struct Attrs {
    bool upper = true;
    static void each(auto& s, auto&& field) { field("upper", s.upper); }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

}  // namespace opfuse
