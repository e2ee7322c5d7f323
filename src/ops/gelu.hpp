// Gaussian error linear unit.
//   exact: y = x/2 * (1 + erf(x / sqrt 2))
//   tanh:  y = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Gelu {
  enum class Form { exact, tanh };
  struct Attrs {
    Form form = Form::exact;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
      field("form", self.form);
    }
  };
  static OpSpec spec() {
    return {.name = "gelu",
            .inputs = {{"x"}},
            .flops_per_element = 13,
            .doc = "Gaussian error linear unit.",
            .types = OperandTypes::floats};
  }
  template <class S>
  static S eval(const Attrs& a, S x) {
    const S inner = a.form == Form::exact ? erf(x * S(0.70710678118654752440))
                                          : tanh(S(0.79788456080286535588) * (x + S(0.044715) * x * x * x));
    return S(0.5) * x * (S(1) + inner);
  }
};

template <>
inline constexpr auto enum_names<Gelu::Form> = std::array{"exact", "tanh"};

}  // namespace opfuse
