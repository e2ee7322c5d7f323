// y = x is infinite, of the signs asked for
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct IsInf {
  struct Attrs {
    bool detect_negative = true;
    bool detect_positive = true;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
      field("detect_negative", self.detect_negative);
      field("detect_positive", self.detect_positive);
    }
  };
  static OpSpec spec() {
    return {.name = "is_inf",
            .inputs = {{"x"}},
            .result = ResultDType::boolean,
            .flops_per_element = 3,
            .doc = "True where infinite.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static Bool<S> eval(const Attrs& a, S x) {
    const Bool<S> positive = logical_and(is_inf(x), greater(x, S(0)));
    const Bool<S> negative = logical_and(is_inf(x), less(x, S(0)));
    if (!a.detect_negative) return a.detect_positive ? positive : logical_and(positive, negative);
    return a.detect_positive ? is_inf(x) : negative;
  }
};

}  // namespace opfuse
