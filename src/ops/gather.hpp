// Indexed reads.
//   gather           y[.., i.., ..] = x[.., indices[i..], ..]            along `axis`
//   gather_elements  y[i,j,k] = x[i, indices[i,j,k], k]                  (axis 1)
//   gather_nd        y[b.., i.., ..] = x[b.., indices[b.., i.., :], ..]
// Negative indices count from the end; an index outside the axis is E::bad_dimension.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

/// Inputs x, indices.
struct Gather {
  struct Attrs {
    int64_t axis = 0;
    static void each(auto& s, auto&& field) { field("axis", s.axis); }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static std::optional<std::vector<Dim>> dims(const Attrs& attrs, const Inference& in);
};

struct GatherElements {
  struct Attrs {
    int64_t axis = 0;
    static void each(auto& s, auto&& field) { field("axis", s.axis); }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

struct GatherND {
  struct Attrs {
    int64_t batch_dims = 0;
    static void each(auto& s, auto&& field) { field("batch_dims", s.batch_dims); }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

}  // namespace opfuse
