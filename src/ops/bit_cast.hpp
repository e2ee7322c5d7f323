// y = the bits of x as another element type of as many bits. `from` is x's declared type, which exact evaluation, in
// double throughout, would not know.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct BitCast {
  struct Attrs {
    DType from = DType::f32;
    DType to = DType::i32;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
      field("from", self.from);
      field("to", self.to);
    }
  };
  static OpSpec spec() {
    return {.name = "bit_cast",
            .inputs = {{"x"}},
            .result = ResultDType::attribute_to,
            .doc = "The same bits as another element type."};
  }
  static constexpr bool kNoRealLaw = true;
  template <class S>
  static S eval(const Attrs& a, S x) {
    return bit_cast(cast(x, a.from), a.to);
  }
};

}  // namespace opfuse
