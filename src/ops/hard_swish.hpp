// y = x * max(0, min(1, x / 6 + 1/2))
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct HardSwish {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "hard_swish",
            .inputs = {{"x"}},
            .flops_per_element = 5,
            .doc = "Piecewise linear Swish.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return x * maximum(S(0), minimum(S(1), x * S(1.0 / 6) + S(0.5)));
  }
};

}  // namespace opfuse
