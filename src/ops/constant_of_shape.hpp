// A tensor of the given dimensions filled with one value. The fill of an integer dtype must be a whole number.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct ConstantOfShape {
  struct Attrs {
    DType dtype = DType::f32;
    double value = 0;
    static void each(auto& self, auto&& field) {
      field("dtype", self.dtype);
      field("value", self.value);
    }
  };
  static OpSpec spec() {
    return {.name = "constant_of_shape",
            .inputs = {{"shape"}},
            .kind = OpKind::shape,
            .flops_per_element = 0,
            .doc = "Filled tensor."};
  }
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static std::optional<std::vector<Dim>> dims(const Attrs& attrs, const Inference& in);
};

}  // namespace opfuse
