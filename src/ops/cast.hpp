// y = x in another element type. Reals round to nearest even; reals to integers truncate towards zero and
// saturate; integers to narrower integers keep the low bits; anything but zero is true.
#pragma once

#include "ops/declare.hpp"
#include "ops/dtype_of.hpp"

namespace opfuse {

/// Whole tensors at once; in exact precision reals stay f64 whichever float is asked for.
Tensor cast_tensor(const Tensor& x, DType to, Precision precision);

struct Cast {
  struct Attrs {
    DType to = DType::f32;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
      field("to", self.to);
    }
  };
  static OpSpec spec() {
    return {.name = "cast",
            .inputs = {{"x"}},
            .result = ResultDType::attribute_to,
            .doc = "Conversion to another element type."};
  }
  static constexpr bool kNoRealLaw = true;
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static std::optional<std::vector<Dim>> dims(const Attrs& attrs, const Inference& in);
  template <class S>
  static S eval(const Attrs& a, S x) {
    return cast(x, a.to);
  }
};

}  // namespace opfuse
