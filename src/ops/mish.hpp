// y = x * tanh(log(1 + exp(x))), the softplus written so that exp does not overflow
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Mish {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "mish",
            .inputs = {{"x"}},
            .flops_per_element = 32,
            .doc = "Self-regularised non-monotonic activation.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return x * tanh(maximum(x, S(0)) + log(S(1) + exp(-abs(x))));
  }
};

}  // namespace opfuse
