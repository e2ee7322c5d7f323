// The arithmetic mean of any number of operands, broadcast together.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Mean {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {
        .name = "mean", .inputs = {variadic_port("x")}, .doc = "Mean of all operands.", .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, Operands<S> xs) {
    S y = *xs[0];
    for (const S* x : xs.subspan(1)) y = y + *x;
    return y * S(1.0 / static_cast<double>(xs.size()));
  }
};

}  // namespace opfuse
