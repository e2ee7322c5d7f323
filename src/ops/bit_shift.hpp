// y = x shifted by `by` bits
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct BitShift {
  enum class Direction { left, right };
  struct Attrs {
    Direction direction = Direction::left;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
      field("direction", self.direction);
    }
  };
  static OpSpec spec() {
    return {.name = "bit_shift",
            .inputs = {{"x"}, {"by"}},
            .doc = "Bit shift of unsigned integers.",
            .types = OperandTypes::integers};
  }
  static constexpr bool kNoRealLaw = true;
  template <class S>
  static S eval(const Attrs& a, S x, S by) {
    return a.direction == Direction::left ? shift_left(x, by) : shift_right(x, by);
  }
};

template <>
inline constexpr auto enum_names<BitShift::Direction> = std::array{"left", "right"};

}  // namespace opfuse
