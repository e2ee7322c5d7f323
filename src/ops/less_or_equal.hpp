// y = a <= b, elementwise with broadcasting
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct LessOrEqual {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "less_or_equal", .inputs = {{"a"}, {"b"}}, .result = ResultDType::boolean, .doc = "Comparison."};
  }
  template <class S>
  static Bool<S> eval(const Attrs&, S a, S b) {
    return less_equal(a, b);
  }
};

}  // namespace opfuse
