// Softmax family along one axis.
//   softmax      exp(x - max) / sum exp(x - max)      log_softmax   x - max - log sum exp(x - max)
//   hardmax      1 at the first maximum, else 0
// flatten: opset < 13 semantics, the tensor is seen as [product before axis, product from axis on].
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct SoftmaxAttrs {
  int64_t axis = -1;
  bool flatten = false;
  static void each(auto& s, auto&& field) {
    field("axis", s.axis);
    field("flatten", s.flatten);
  }
};

struct Softmax {
  using Attrs = SoftmaxAttrs;
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

struct LogSoftmax {
  using Attrs = SoftmaxAttrs;
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

struct Hardmax {
  using Attrs = SoftmaxAttrs;
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

}  // namespace opfuse
