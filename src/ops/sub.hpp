// y = a - b, with broadcasting
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Sub {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "sub", .inputs = {{"a"}, {"b"}}, .doc = "Difference.", .types = OperandTypes::numeric};
  }
  template <class S>
  static S eval(const Attrs&, S a, S b) {
    return a - b;
  }
};

}  // namespace opfuse
