// y = floor(x)
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Floor {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "floor", .inputs = {{"x"}}, .doc = "Largest integer not above.", .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return floor(x);
  }
};

}  // namespace opfuse
