// Dropout as inference sees it: y = x, and a mask of ones. Training mode is refused.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Dropout {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "dropout",
            .inputs = {{"x"}, optional_port("ratio"), optional_port("training_mode")},
            .outputs = {{"y"}, optional_port("mask")},
            .doc = "The operand itself: dropout does nothing in inference.",
            .moves = Moves::view};
  }
  static std::vector<TensorType> infer(const Attrs&, const Inference& in);
  static std::vector<Tensor> reference(const Attrs&, Tensors inputs, Precision precision);
  template <class S>
  static S eval(const Attrs&, S x) {
    return x;
  }
};

}  // namespace opfuse
