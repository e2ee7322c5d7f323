// y = cosh(x)
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Cosh {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "cosh",
            .inputs = {{"x"}},
            .flops_per_element = 10,
            .doc = "Hyperbolic cosine.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return cosh(x);
  }
};

}  // namespace opfuse
