// Coordinates of the non-zero elements, [rank, count], in row-major order. The count is known for constants; of data it
// is the symbol in `defines`, which a run gives its value (ir/defined_symbols.hpp).
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct NonZero {
  struct Attrs {
    std::vector<std::string> defines;  ///< the count
    static void each(auto& s, auto&& field) { field("defines", s.defines); }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

}  // namespace opfuse
