// y = a xor b, bit by bit
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct BitwiseXor {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "bitwise_xor",
            .inputs = {{"a"}, {"b"}},
            .doc = "Bitwise xor of integers.",
            .types = OperandTypes::integers};
  }
  static constexpr bool kNoRealLaw = true;
  template <class S>
  static S eval(const Attrs&, S a, S b) {
    return bit_xor(a, b);
  }
};

}  // namespace opfuse
