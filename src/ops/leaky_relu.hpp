// y = x < 0 ? alpha * x : x
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct LeakyRelu {
  struct Attrs {
    double alpha = 0.01;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
      field("alpha", self.alpha);
    }
  };
  static OpSpec spec() {
    return {.name = "leaky_relu",
            .inputs = {{"x"}},
            .flops_per_element = 2,
            .doc = "Leaky rectified linear unit.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs& a, S x) {
    return select(less(x, S(0)), S(a.alpha) * x, x);
  }
};

}  // namespace opfuse
