// y = x is not a number
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct IsNan {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "is_nan",
            .inputs = {{"x"}},
            .result = ResultDType::boolean,
            .doc = "True where not a number.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static Bool<S> eval(const Attrs&, S x) {
    return is_nan(x);
  }
};

}  // namespace opfuse
