// y = log(1 + exp(x)), written so that exp does not overflow: max(x, 0) + log(1 + exp(-|x|))
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Softplus {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "softplus",
            .inputs = {{"x"}},
            .flops_per_element = 20,
            .doc = "Smooth rectifier.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return maximum(x, S(0)) + log(S(1) + exp(-abs(x)));
  }
};

}  // namespace opfuse
