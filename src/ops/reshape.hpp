// The same elements with other dimensions. In `shape`, -1 stands for what is left and 0 for the dimension of x at the
// same place (for zero itself with allowzero).
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

/// The resulting dimensions. E::shape_mismatch when the numbers of elements differ, E::bad_dimension for a bad -1 or 0.
Shape reshaped(const Shape& x, const std::vector<Dim>& target, bool allowzero);

struct Reshape {
  struct Attrs {
    bool allowzero = false;
    static void each(auto& self, auto&& field) { field("allowzero", self.allowzero); }
  };
  static OpSpec spec() {
    return {.name = "reshape",
            .inputs = {{"x"}, {"shape"}},
            .kind = OpKind::injective,
            .flops_per_element = 0,
            .doc = "Other dimensions, same elements.",
            .moves = Moves::view};
  }
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static std::optional<std::vector<Dim>> dims(const Attrs& attrs, const Inference& in);
};

}  // namespace opfuse
