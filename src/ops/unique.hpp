// Elements, or slices along an axis, that differ from each other.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

/// Results: what differs, the first place of each, of each place its number among them, how often each is there.
struct Unique {
  struct Attrs {
    std::vector<int64_t> axis;         ///< one, or none: of the flat tensor
    bool sorted = true;                ///< ascending; else in the order of first places
    std::vector<std::string> defines;  ///< how many there are
    static void each(auto& s, auto&& field) {
      field("axis", s.axis), field("sorted", s.sorted), field("defines", s.defines);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

}  // namespace opfuse
