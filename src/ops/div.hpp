// y = a / b, with broadcasting; integers truncate towards zero
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Div {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "div", .inputs = {{"a"}, {"b"}}, .doc = "Quotient.", .types = OperandTypes::numeric};
  }
  template <class S>
  static S eval(const Attrs&, S a, S b) {
    return a / b;
  }
};

}  // namespace opfuse
