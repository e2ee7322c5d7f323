// y = a and b on booleans
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct And {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "and",
            .inputs = {{"a"}, {"b"}},
            .result = ResultDType::boolean,
            .doc = "Logical and.",
            .types = OperandTypes::booleans};
  }
  template <class S>
  static Bool<S> eval(const Attrs&, Bool<S> a, Bool<S> b) {
    return logical_and(a, b);
  }
};

}  // namespace opfuse
