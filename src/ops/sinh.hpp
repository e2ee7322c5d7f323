// y = sinh(x)
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Sinh {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "sinh",
            .inputs = {{"x"}},
            .flops_per_element = 10,
            .doc = "Hyperbolic sine.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return sinh(x);
  }
};

}  // namespace opfuse
