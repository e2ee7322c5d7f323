// y = x < -lambda ? x + bias : x > lambda ? x - bias : 0
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Shrink {
  struct Attrs {
    double bias = 0.0;
    double lambd = 0.5;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
      field("bias", self.bias);
      field("lambd", self.lambd);
    }
  };
  static OpSpec spec() {
    return {.name = "shrink",
            .inputs = {{"x"}},
            .flops_per_element = 3,
            .doc = "Moves values towards zero, small ones to zero.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs& a, S x) {
    return select(less(x, S(-a.lambd)), x + S(a.bias), select(greater(x, S(a.lambd)), x - S(a.bias), S(0)));
  }
};

}  // namespace opfuse
