// One of two values of the same rank, as a scalar condition says: what an If gives whose branches are both computed.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Choose {
  struct Attrs {
    std::vector<int64_t> axes;         ///< along which the two may have other sizes
    std::vector<std::string> defines;  ///< the sizes there
    static void each(auto& s, auto&& field) { field("axes", s.axes), field("defines", s.defines); }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

}  // namespace opfuse
