// y = x / (1 + |x|)
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Softsign {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "softsign",
            .inputs = {{"x"}},
            .flops_per_element = 3,
            .doc = "x / (1 + |x|).",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return x / (S(1) + abs(x));
  }
};

}  // namespace opfuse
