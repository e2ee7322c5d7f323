// Rectified linear unit: y = max(x, 0). NaN stays NaN.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Relu {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "relu", .inputs = {{"x"}}, .doc = "Rectified linear unit.", .types = OperandTypes::numeric};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return maximum(x, S(0));
  }
};

}  // namespace opfuse
