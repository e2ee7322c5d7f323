// y = exp(x)
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Exp {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {
        .name = "exp", .inputs = {{"x"}}, .flops_per_element = 8, .doc = "Exponential.", .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return exp(x);
  }
};

}  // namespace opfuse
