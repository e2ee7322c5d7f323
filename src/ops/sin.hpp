// y = sin(x)
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Sin {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "sin", .inputs = {{"x"}}, .flops_per_element = 10, .doc = "Sine.", .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return sin(x);
  }
};

}  // namespace opfuse
