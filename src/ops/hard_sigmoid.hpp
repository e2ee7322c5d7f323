// y = max(0, min(1, alpha * x + beta))
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct HardSigmoid {
  struct Attrs {
    double alpha = 0.2;
    double beta = 0.5;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
      field("alpha", self.alpha);
      field("beta", self.beta);
    }
  };
  static OpSpec spec() {
    return {.name = "hard_sigmoid",
            .inputs = {{"x"}},
            .flops_per_element = 4,
            .doc = "Piecewise linear sigmoid.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs& a, S x) {
    return maximum(S(0), minimum(S(1), S(a.alpha) * x + S(a.beta)));
  }
};

}  // namespace opfuse
