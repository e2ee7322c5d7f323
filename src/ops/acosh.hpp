// y = acosh(x)
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Acosh {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "acosh",
            .inputs = {{"x"}},
            .flops_per_element = 10,
            .doc = "Inverse hyperbolic cosine.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return acosh(x);
  }
};

}  // namespace opfuse
