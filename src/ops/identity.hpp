// y = x
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Identity {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "identity", .inputs = {{"x"}}, .doc = "The operand itself.", .moves = Moves::view};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return x;
  }
};

}  // namespace opfuse
