// The least of any number of operands, broadcast together; NaN when one is NaN.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Min {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {
        .name = "min", .inputs = {variadic_port("x")}, .doc = "Least of all operands.", .types = OperandTypes::numeric};
  }
  template <class S>
  static S eval(const Attrs&, Operands<S> xs) {
    S y = *xs[0];
    for (const S* x : xs.subspan(1)) y = minimum(y, *x);
    return y;
  }
};

}  // namespace opfuse
