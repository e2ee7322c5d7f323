// y = x / (1 + exp(-alpha * x)): SiLU, also called Swish; alpha = 1.702 is the quick GELU
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Silu {
  struct Attrs {
    double alpha = 1.0;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
      field("alpha", self.alpha);
    }
  };
  static OpSpec spec() {
    return {.name = "silu",
            .inputs = {{"x"}},
            .flops_per_element = 12,
            .doc = "Sigmoid linear unit (Swish).",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs& a, S x) {
    return x / (S(1) + exp(a.alpha == 1 ? -x : S(-a.alpha) * x));
  }
};

}  // namespace opfuse
