// y = neg(x)
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Neg {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "neg", .inputs = {{"x"}}, .doc = "Negation.", .types = OperandTypes::numeric};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return neg(x);
  }
};

}  // namespace opfuse
