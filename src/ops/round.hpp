// Rounds halves to the even neighbour.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Round {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {
        .name = "round", .inputs = {{"x"}}, .doc = "Nearest integer, halves to even.", .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs&, S x) {
    return round_even(x);
  }
};

}  // namespace opfuse
