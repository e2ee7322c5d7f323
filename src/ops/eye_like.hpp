// Ones on the k-th diagonal, zeros elsewhere, with the dimensions of x.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct EyeLike {
  struct Attrs {
    DType dtype = DType::unknown;  ///< unknown: that of x
    int64_t k = 0;
    static void each(auto& self, auto&& field) {
      field("dtype", self.dtype);
      field("k", self.k);
    }
  };
  static OpSpec spec() {
    return {.name = "eye_like",
            .inputs = {{"x"}},
            .kind = OpKind::shape,
            .flops_per_element = 0,
            .doc = "Identity matrix."};
  }
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

}  // namespace opfuse
