// y = a or b, bit by bit
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct BitwiseOr {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "bitwise_or",
            .inputs = {{"a"}, {"b"}},
            .doc = "Bitwise or of integers.",
            .types = OperandTypes::integers};
  }
  static constexpr bool kNoRealLaw = true;
  template <class S>
  static S eval(const Attrs&, S a, S b) {
    return bit_or(a, b);
  }
};

}  // namespace opfuse
