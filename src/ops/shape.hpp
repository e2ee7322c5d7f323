// The dimensions of x as an i64 vector, from axis `start` to before `end`.
#pragma once

#include <limits>

#include "ops/declare.hpp"

namespace opfuse {

struct ShapeOf {
  struct Attrs {
    int64_t start = 0;
    int64_t end = std::numeric_limits<int64_t>::max();
    static void each(auto& self, auto&& field) {
      field("start", self.start);
      field("end", self.end);
    }
  };
  static OpSpec spec() {
    return {.name = "shape",
            .inputs = {{"x"}},
            .kind = OpKind::shape,
            .flops_per_element = 0,
            .doc = "Dimensions of a value."};
  }
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static std::optional<std::vector<Dim>> dims(const Attrs& attrs, const Inference& in);
};

}  // namespace opfuse
