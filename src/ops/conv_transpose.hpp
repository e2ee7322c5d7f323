// Transposed convolution: every input element adds its value times the kernel into the output.
//   y[n,o, p*stride - pad + t*dilation] += x[n,i,p] * w[i, o, t]        weights [C, O/group, kernel...]
#pragma once

#include "ops/window.hpp"

namespace opfuse {

struct ConvTranspose {
  struct Attrs : WindowAttrs {
    int64_t group = 1;
    std::vector<int64_t> output_padding;
    std::vector<int64_t> output_shape;  ///< spatial only; when given the pads follow from it
    static void each(auto& s, auto&& field) {
      WindowAttrs::each(s, field);
      field("group", s.group);
      field("output_padding", s.output_padding);
      field("output_shape", s.output_shape);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static Cost cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out);

  /// The resolved spatial axes, in -> out; `w` must have constant kernel extents.
  static std::vector<WindowAxis> window(const Attrs& attrs, const Shape& x, const Shape& w);
};

}  // namespace opfuse
