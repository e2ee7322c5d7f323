// y = c ? a : b, all three broadcast together
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Where {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "where",
            .inputs = {{"c"}, {"a"}, {"b"}},
            .result = ResultDType::same_as_second,
            .doc = "Choose by condition."};
  }
  template <class S>
  static S eval(const Attrs&, Bool<S> c, S a, S b) {
    return select(c, a, b);
  }
};

}  // namespace opfuse
