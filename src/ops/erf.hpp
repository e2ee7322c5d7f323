// y = erf(x)
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Erf {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "erf",
            .inputs = {{"x"}},
            .flops_per_element = 10,
            .doc = "Error function.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return erf(x);
  }
};

}  // namespace opfuse
