// y = 1 / (1 + exp(-x))
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Sigmoid {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "sigmoid",
            .inputs = {{"x"}},
            .flops_per_element = 11,
            .doc = "Logistic function.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return S(1) / (S(1) + exp(-x));
  }
};

}  // namespace opfuse
