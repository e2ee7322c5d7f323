// Convolution over any number of spatial axes, [N, C, spatial...] and weights [O, C/group, kernel...].
//   y[n,o,p...] = b[o] + sum over i, t of  x[n, g*C/group + i, p*stride - pad + t*dilation] * w[o,i,t...]
#pragma once

#include "ops/window.hpp"

namespace opfuse {

struct Conv {
  struct Attrs {
    AutoPad auto_pad = AutoPad::notset;
    std::vector<int64_t> dilations;
    int64_t group = 1;
    std::vector<int64_t> kernel_shape;  ///< empty: taken from the weights; otherwise must agree with them
    std::vector<int64_t> pads;          ///< all begins, then all ends; empty: zeros
    std::vector<int64_t> strides;
    static void each(auto& s, auto&& field) {
      field("auto_pad", s.auto_pad);
      field("dilations", s.dilations);
      field("group", s.group);
      field("kernel_shape", s.kernel_shape);
      field("pads", s.pads);
      field("strides", s.strides);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static Cost cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out);

  /// The resolved spatial axes; `w` must have constant kernel extents.
  static std::vector<WindowAxis> window(const Attrs& attrs, const Shape& x, const Shape& w);
};

}  // namespace opfuse
