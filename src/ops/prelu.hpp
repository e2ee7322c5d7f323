// y = x < 0 ? slope * x : x, the slope broadcasts to x
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct PRelu {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "prelu",
            .inputs = {{"x"}, {"slope"}},
            .flops_per_element = 2,
            .doc = "Rectified linear unit with a learned slope.",
            .types = OperandTypes::numeric};
  }
  template <class S>
  static S eval(const Attrs&, S x, S slope) {
    return select(less(x, S(0)), slope * x, x);
  }
};

}  // namespace opfuse
