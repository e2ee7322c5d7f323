// y = x > alpha ? x : 0
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct ThresholdedRelu {
  struct Attrs {
    double alpha = 1.0;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
      field("alpha", self.alpha);
    }
  };
  static OpSpec spec() {
    return {.name = "thresholded_relu",
            .inputs = {{"x"}},
            .doc = "x where it exceeds a threshold, else zero.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs& a, S x) {
    return select(greater(x, S(a.alpha)), x, S(0));
  }
};

}  // namespace opfuse
