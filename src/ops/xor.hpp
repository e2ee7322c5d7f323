// y = a xor b on booleans
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Xor {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "xor",
            .inputs = {{"a"}, {"b"}},
            .result = ResultDType::boolean,
            .doc = "Logical xor.",
            .types = OperandTypes::booleans};
  }
  template <class S>
  static Bool<S> eval(const Attrs&, Bool<S> a, Bool<S> b) {
    return logical_xor(a, b);
  }
};

}  // namespace opfuse
