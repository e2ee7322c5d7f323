// y = a or b on booleans
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Or {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "or",
            .inputs = {{"a"}, {"b"}},
            .result = ResultDType::boolean,
            .doc = "Logical or.",
            .types = OperandTypes::booleans};
  }
  template <class S>
  static Bool<S> eval(const Attrs&, Bool<S> a, Bool<S> b) {
    return logical_or(a, b);
  }
};

}  // namespace opfuse
