// Einstein summation, e.g. "bij,bjk->bik"; an ellipsis stands for broadcast batch axes.
#pragma once

#include <map>
#include <string>

#include "ops/declare.hpp"

namespace opfuse {

struct Einsum {
  struct Attrs {
    std::string equation;
    static void each(auto& s, auto&& field) { field("equation", s.equation); }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static Cost cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out);
};

/// An equation with its operands: each axis has a label, equal labels run together.
struct EinsumAxes {
  std::vector<std::vector<int>> operands;  ///< labels of each operand's axes
  std::vector<int> result, summed;
  std::map<int, Dim> extents;  ///< by label; an operand's axis may be 1 instead
};
EinsumAxes einsum_axes(const Einsum::Attrs& attrs, const std::vector<Shape>& operands);

}  // namespace opfuse
