// Running sum or product along an axis. Inputs x, axis (scalar).
//   exclusive: element i is not part of its own sum      reverse: from the end
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

template <bool kProduct>
struct Cumulative {
  struct Attrs {
    bool exclusive = false;
    bool reverse = false;
    static void each(auto& s, auto&& field) {
      field("exclusive", s.exclusive);
      field("reverse", s.reverse);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

using CumSum = Cumulative<false>;
using CumProd = Cumulative<true>;

}  // namespace opfuse
