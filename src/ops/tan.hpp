// y = tan(x)
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Tan {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {
        .name = "tan", .inputs = {{"x"}}, .flops_per_element = 10, .doc = "Tangent.", .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return tan(x);
  }
};

}  // namespace opfuse
