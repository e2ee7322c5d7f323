// Repeats a tensor along its axes. Inputs x, repeats.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Tile {
  struct Attrs {
    static void each(auto&, auto&&) {}
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

}  // namespace opfuse
