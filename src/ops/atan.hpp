// y = atan(x)
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Atan {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "atan",
            .inputs = {{"x"}},
            .flops_per_element = 10,
            .doc = "Arc tangent.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return atan(x);
  }
};

}  // namespace opfuse
