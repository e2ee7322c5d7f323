// y = a and b, bit by bit
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct BitwiseAnd {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "bitwise_and",
            .inputs = {{"a"}, {"b"}},
            .doc = "Bitwise and of integers.",
            .types = OperandTypes::integers};
  }
  static constexpr bool kNoRealLaw = true;
  template <class S>
  static S eval(const Attrs&, S a, S b) {
    return bit_and(a, b);
  }
};

}  // namespace opfuse
