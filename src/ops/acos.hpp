// y = acos(x)
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Acos {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "acos",
            .inputs = {{"x"}},
            .flops_per_element = 10,
            .doc = "Arc cosine.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return acos(x);
  }
};

}  // namespace opfuse
