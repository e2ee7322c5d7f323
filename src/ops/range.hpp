// start, start + delta, ... before limit.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Range {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "range",
            .inputs = {{"start"}, {"limit"}, {"delta"}},
            .kind = OpKind::shape,
            .flops_per_element = 0,
            .doc = "Arithmetic sequence."};
  }
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static std::optional<std::vector<Dim>> dims(const Attrs& attrs, const Inference& in);
};

}  // namespace opfuse
