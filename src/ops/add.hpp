// y = a + b, with broadcasting
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Add {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "add", .inputs = {{"a"}, {"b"}}, .doc = "Sum of two.", .types = OperandTypes::numeric};
  }
  template <class S>
  static S eval(const Attrs&, S a, S b) {
    return a + b;
  }
};

}  // namespace opfuse
