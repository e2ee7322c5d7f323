// y = sqrt(x)
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Sqrt {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "sqrt", .inputs = {{"x"}}, .doc = "Square root.", .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return sqrt(x);
  }
};

}  // namespace opfuse
