// y = tanh(x)
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Tanh {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "tanh",
            .inputs = {{"x"}},
            .flops_per_element = 10,
            .doc = "Hyperbolic tangent.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return tanh(x);
  }
};

}  // namespace opfuse
