// y = cos(x)
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Cos {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "cos", .inputs = {{"x"}}, .flops_per_element = 10, .doc = "Cosine.", .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return cos(x);
  }
};

}  // namespace opfuse
