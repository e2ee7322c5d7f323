// y = not x on booleans
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Not {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "not",
            .inputs = {{"x"}},
            .result = ResultDType::boolean,
            .doc = "Logical negation.",
            .types = OperandTypes::booleans};
  }
  template <class S>
  static Bool<S> eval(const Attrs&, Bool<S> x) {
    return logical_not(x);
  }
};

}  // namespace opfuse
