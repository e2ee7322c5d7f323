// y = gamma * (x <= 0 ? alpha * (exp(x) - 1) : x)
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Selu {
  struct Attrs {
    double alpha = 1.67326319217681884765625;
    double gamma = 1.05070102214813232421875;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
      field("alpha", self.alpha);
      field("gamma", self.gamma);
    }
  };
  static OpSpec spec() {
    return {.name = "selu",
            .inputs = {{"x"}},
            .flops_per_element = 11,
            .doc = "Scaled exponential linear unit.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs& a, S x) {
    return S(a.gamma) * select(less_equal(x, S(0)), S(a.alpha) * (exp(x) - S(1)), x);
  }
};

}  // namespace opfuse
