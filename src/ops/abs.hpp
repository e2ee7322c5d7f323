// y = abs(x)
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Abs {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "abs", .inputs = {{"x"}}, .doc = "Absolute value.", .types = OperandTypes::numeric};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return abs(x);
  }
};

}  // namespace opfuse
