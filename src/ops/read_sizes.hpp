// Integers that data say and shapes are made of: the operand itself, whose elements are symbols from here on.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

/// In front of an operand that decides a shape (k of TopK, the limit of Range, a target of Reshape). No ONNX operator:
/// it is written as Identity.
struct ReadSizes {
  struct Attrs {
    std::vector<std::string> defines;  ///< one for each element
    static void each(auto& s, auto&& field) { field("defines", s.defines); }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static std::optional<std::vector<Dim>> dims(const Attrs& attrs, const Inference& in);
};

}  // namespace opfuse
