// The sum of any number of operands, broadcast together.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Sum {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {
        .name = "sum", .inputs = {variadic_port("x")}, .doc = "Sum of all operands.", .types = OperandTypes::numeric};
  }
  template <class S>
  static S eval(const Attrs&, Operands<S> xs) {
    S y = *xs[0];
    for (const S* x : xs.subspan(1)) y = y + *x;
    return y;
  }
};

}  // namespace opfuse
