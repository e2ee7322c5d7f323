// Indexed writes into a copy of x.
//   scatter_elements  y[i, indices[i,j,k], k] (op)= updates[i,j,k]      (axis 1)
//   scatter_nd        y[indices[i.., :], ..] (op)= updates[i.., ..]
#pragma once

#include <array>

#include "ops/declare.hpp"

namespace opfuse {

enum class ScatterReduction { none, add, mul, max, min };
template <>
inline constexpr auto enum_names<ScatterReduction> = std::array{"none", "add", "mul", "max", "min"};

/// Inputs x, indices, updates.
struct ScatterElements {
  struct Attrs {
    int64_t axis = 0;
    ScatterReduction reduction = ScatterReduction::none;
    static void each(auto& s, auto&& field) {
      field("axis", s.axis);
      field("reduction", s.reduction);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

/// Inputs x, indices, updates.
struct ScatterND {
  struct Attrs {
    ScatterReduction reduction = ScatterReduction::none;
    static void each(auto& s, auto&& field) { field("reduction", s.reduction); }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

}  // namespace opfuse
