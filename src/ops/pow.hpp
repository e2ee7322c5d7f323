// y = x ^ e with broadcasting, in the element type of x. Types may differ: for a real base the exponent takes its
// type; an integer base with a real exponent is raised in that type; two integer types are raised in i64.
#pragma once

#include "ops/declare.hpp"
#include "ops/dtype_of.hpp"

namespace opfuse {

struct Pow {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "pow",
            .inputs = {{"x"}, {"e"}},
            .flops_per_element = 20,
            .doc = "Power.",
            .types = OperandTypes::numeric};
  }
  template <class S>
  static S eval(const Attrs&, S x, S e) {
    if constexpr (!std::is_same_v<S, double>) {
      const DType base = dtype_of(x), exponent = dtype_of(e);
      if (base != exponent) {
        if (is_float(base)) return pow(x, cast(e, base));
        const DType common = is_float(exponent) ? exponent : DType::i64;
        return cast(pow(cast(x, common), cast(e, common)), base);
      }
    }
    return pow(x, e);
  }
};

}  // namespace opfuse
