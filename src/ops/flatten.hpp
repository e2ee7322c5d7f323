// Two dimensions: the product of those before `axis`, and of the rest.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Flatten {
  struct Attrs {
    int64_t axis = 1;
    static void each(auto& self, auto&& field) { field("axis", self.axis); }
  };
  static OpSpec spec() {
    return {.name = "flatten",
            .inputs = {{"x"}},
            .kind = OpKind::injective,
            .flops_per_element = 0,
            .doc = "Flattens to two dimensions.",
            .moves = Moves::view};
  }
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static std::optional<std::vector<Dim>> dims(const Attrs& attrs, const Inference& in);
};

}  // namespace opfuse
