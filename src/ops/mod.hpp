// Remainder. Its sign is that of the divisor, or of the dividend when fmod is set (which reals need).
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Mod {
  struct Attrs {
    bool fmod = false;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
      field("fmod", self.fmod);
    }
  };
  static OpSpec spec() {
    return {.name = "mod",
            .inputs = {{"x"}, {"y"}},
            .flops_per_element = 2,
            .doc = "Remainder.",
            .types = OperandTypes::numeric};
  }
  template <class S>
  static S eval(const Attrs& a, S x, S y) {
    return a.fmod ? fmod(x, y) : mod(x, y);
  }
};

}  // namespace opfuse
