// y = x < 0 ? alpha * (exp(x) - 1) : x
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Elu {
  struct Attrs {
    double alpha = 1.0;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
      field("alpha", self.alpha);
    }
  };
  static OpSpec spec() {
    return {.name = "elu",
            .inputs = {{"x"}},
            .flops_per_element = 10,
            .doc = "Exponential linear unit.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs& a, S x) {
    return select(less(x, S(0)), S(a.alpha) * (exp(x) - S(1)), x);
  }
};

}  // namespace opfuse
