// y = atanh(x)
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Atanh {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "atanh",
            .inputs = {{"x"}},
            .flops_per_element = 10,
            .doc = "Inverse hyperbolic tangent.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return atanh(x);
  }
};

}  // namespace opfuse
