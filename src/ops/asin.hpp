// y = asin(x)
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Asin {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {
        .name = "asin", .inputs = {{"x"}}, .flops_per_element = 10, .doc = "Arc sine.", .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return asin(x);
  }
};

}  // namespace opfuse
