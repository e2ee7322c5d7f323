// y = x in the element type of `like`, whose values and shape do not matter.
#pragma once

#include "ops/declare.hpp"
#include "ops/dtype_of.hpp"

namespace opfuse {

struct CastLike {
  using Attrs = NoAttrs;
  static OpSpec spec() {
    return {.name = "cast_like",
            .inputs = {{"x"}, {"like"}},
            .result = ResultDType::same_as_second,
            .doc = "Conversion to the element type of another value."};
  }
  static constexpr bool kNoRealLaw = true;
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  template <class S>
  static S eval(const Attrs&, S x, S like) {
    return cast(x, dtype_of(like));
  }
};

}  // namespace opfuse
