// y = min(max(x, low), high). A limit is an operand when there is one, else the attribute; none by default.
// NaN stays NaN; `high` wins when the limits cross. min = 0, max = 6 is ReLU6.
#pragma once

#include <limits>

#include "ops/declare.hpp"

namespace opfuse {

struct Clip {
  struct Attrs {
    double min = -std::numeric_limits<double>::infinity();
    double max = std::numeric_limits<double>::infinity();
    template <class Self, class F>
    static void each(Self& self, F&& field) {
      field("min", self.min);
      field("max", self.max);
    }
  };
  static OpSpec spec() {
    return {.name = "clip",
            .inputs = {{"x"}, optional_port("low"), optional_port("high")},
            .flops_per_element = 2,
            .doc = "Limits to a range.",
            .types = OperandTypes::numeric};
  }
  template <class S>
  static S eval(const Attrs& a, Operands<S> xs) {
    S y = *xs[0];
    if (xs.size() > 1 && xs[1])
      y = maximum(y, *xs[1]);
    else if (a.min > -std::numeric_limits<double>::infinity())
      y = maximum(y, S(a.min));
    if (xs.size() > 2 && xs[2])
      y = minimum(y, *xs[2]);
    else if (a.max < std::numeric_limits<double>::infinity())
      y = minimum(y, S(a.max));
    return y;
  }
};

}  // namespace opfuse
