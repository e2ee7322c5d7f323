// y = asinh(x)
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Asinh {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "asinh",
            .inputs = {{"x"}},
            .flops_per_element = 10,
            .doc = "Inverse hyperbolic sine.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return asinh(x);
  }
};

}  // namespace opfuse
