// y = sign(x)
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Sign {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "sign", .inputs = {{"x"}}, .doc = "-1, 0 or 1.", .types = OperandTypes::numeric};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return sign(x);
  }
};

}  // namespace opfuse
