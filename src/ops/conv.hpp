// Convolution over any number of spatial axes, [N, C, spatial...] and weights [O, C/group, kernel...].
//   y[n,o,p...] = b[o] + sum over i, t of  x[n, g*C/group + i, p*stride - pad + t*dilation] * w[o,i,t...]
#pragma once

#include "ops/window.hpp"

namespace opfuse {

struct Conv {
  struct Attrs : WindowAttrs {  // a kernel_shape that is given must agree with the weights
    int64_t group = 1;
    static void each(auto& s, auto&& field) {
      WindowAttrs::each(s, field);
      field("group", s.group);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static Cost cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out);

  /// The resolved spatial axes; `w` must have constant kernel extents.
  static std::vector<WindowAxis> window(const Attrs& attrs, const Shape& x, const Shape& w);
  /// Each result channel follows from the operand's channel of the same number alone.
  static bool depthwise(const Attrs& attrs, const Shape& x, const Shape& w);
};

/// A depthwise convolution; false for other operators.
bool is_depthwise(const Node& node);

}  // namespace opfuse
