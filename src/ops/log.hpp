// y = log(x)
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Log {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "log",
            .inputs = {{"x"}},
            .flops_per_element = 8,
            .doc = "Natural logarithm.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return log(x);
  }
};

}  // namespace opfuse
