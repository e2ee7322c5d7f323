// Dimension d of the result is dimension perm[d] of x; reversed when perm is empty.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Transpose {
  struct Attrs {
    std::vector<int64_t> perm;
    static void each(auto& self, auto&& field) { field("perm", self.perm); }
  };
  static OpSpec spec() {
    return {.name = "transpose",
            .inputs = {{"x"}},
            .kind = OpKind::injective,
            .flops_per_element = 0,
            .doc = "Permutes dimensions.",
            .moves = Moves::places};
  }
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static std::optional<std::vector<Dim>> dims(const Attrs& attrs, const Inference& in);

  /// The permutation, checked and never empty (for rank > 0). E::bad_attribute.
  static std::vector<size_t> permutation(const Attrs& attrs, size_t rank);
};

}  // namespace opfuse
