// y = ceil(x)
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Ceil {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "ceil", .inputs = {{"x"}}, .doc = "Smallest integer not below.", .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return ceil(x);
  }
};

}  // namespace opfuse
