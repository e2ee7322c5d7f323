// Position of the largest or smallest element along an axis; of equal ones the first, or the last when asked.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct ArgReduceAttrs {
  int64_t axis = 0;
  bool keepdims = true;
  bool select_last_index = false;
  static void each(auto& s, auto&& field) {
    field("axis", s.axis);
    field("keepdims", s.keepdims);
    field("select_last_index", s.select_last_index);
  }
};

struct ArgMax {
  using Attrs = ArgReduceAttrs;
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

struct ArgMin {
  using Attrs = ArgReduceAttrs;
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

}  // namespace opfuse
