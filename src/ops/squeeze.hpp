// Removes dimensions of 1: those in axes (operand or attribute), or all.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Squeeze {
  struct Attrs {
    std::vector<int64_t> axes;
    static void each(auto& self, auto&& field) { field("axes", self.axes); }
  };
  static OpSpec spec() {
    return {.name = "squeeze",
            .inputs = {{"x"}, optional_port("axes")},
            .kind = OpKind::injective,
            .flops_per_element = 0,
            .doc = "Removes dimensions of 1.",
            .moves = Moves::view};
  }
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static std::optional<std::vector<Dim>> dims(const Attrs& attrs, const Inference& in);
};

}  // namespace opfuse
