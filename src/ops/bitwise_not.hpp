// y = not x, bit by bit
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct BitwiseNot {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "bitwise_not",
            .inputs = {{"x"}},
            .doc = "Bitwise complement of integers.",
            .types = OperandTypes::integers};
  }
  static constexpr bool kNoRealLaw = true;
  template <class S>
  static S eval(const Attrs&, S x) {
    return bit_not(x);
  }
};

}  // namespace opfuse
