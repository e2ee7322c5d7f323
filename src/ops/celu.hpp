// y = max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Celu {
  struct Attrs {
    double alpha = 1.0;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
      field("alpha", self.alpha);
    }
  };
  static OpSpec spec() {
    return {.name = "celu",
            .inputs = {{"x"}},
            .flops_per_element = 13,
            .doc = "Continuously differentiable exponential linear unit.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs& a, S x) {
    return maximum(x, S(0)) + minimum(S(0), S(a.alpha) * (exp(x / S(a.alpha)) - S(1)));
  }
};

}  // namespace opfuse
