// y = a * b, with broadcasting
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Mul {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "mul", .inputs = {{"a"}, {"b"}}, .doc = "Product.", .types = OperandTypes::numeric};
  }
  template <class S>
  static S eval(const Attrs&, S a, S b) {
    return a * b;
  }
};

}  // namespace opfuse
