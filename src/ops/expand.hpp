// Stretches dimensions of 1; `shape` and the shape of x broadcast together.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Expand {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "expand",
            .inputs = {{"x"}, {"shape"}},
            .kind = OpKind::injective,
            .flops_per_element = 0,
            .doc = "Broadcast to a shape.",
            .moves = Moves::places};
  }
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static std::optional<std::vector<Dim>> dims(const Attrs& attrs, const Inference& in);
};

}  // namespace opfuse
