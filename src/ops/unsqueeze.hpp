// Inserts dimensions of 1 so that they are at `axes` (operand or attribute) of the result.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Unsqueeze {
  struct Attrs {
    std::vector<int64_t> axes;
    static void each(auto& self, auto&& field) { field("axes", self.axes); }
  };
  static OpSpec spec() {
    return {.name = "unsqueeze",
            .inputs = {{"x"}, optional_port("axes")},
            .kind = OpKind::injective,
            .flops_per_element = 0,
            .doc = "Inserts dimensions of 1.",
            .moves = Moves::view};
  }
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static std::optional<std::vector<Dim>> dims(const Attrs& attrs, const Inference& in);
};

}  // namespace opfuse
