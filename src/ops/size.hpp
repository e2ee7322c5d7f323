// The number of elements of x, an i64 scalar.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct SizeOf {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {
        .name = "size", .inputs = {{"x"}}, .kind = OpKind::shape, .flops_per_element = 0, .doc = "Number of elements."};
  }
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static std::optional<std::vector<Dim>> dims(const Attrs& attrs, const Inference& in);
};

}  // namespace opfuse
