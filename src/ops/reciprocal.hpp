// y = 1 / x
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Reciprocal {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "reciprocal", .inputs = {{"x"}}, .doc = "1 / x.", .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return reciprocal(x);
  }
};

}  // namespace opfuse
