// y = a < b, elementwise with broadcasting
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Less {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "less", .inputs = {{"a"}, {"b"}}, .result = ResultDType::boolean, .doc = "Comparison."};
  }
  template <class S>
  static Bool<S> eval(const Attrs&, S a, S b) {
    return less(a, b);
  }
};

}  // namespace opfuse
