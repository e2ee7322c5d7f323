// Adds elements before and after each axis. Negative amounts cut.
//   reflect: c b | a b c | b a      edge: a a | a b c | c c      wrap: b c | a b c | a b
#pragma once

#include <array>

#include "ops/declare.hpp"

namespace opfuse {

enum class PadMode { constant, reflect, edge, wrap };
template <>
inline constexpr auto enum_names<PadMode> = std::array{"constant", "reflect", "edge", "wrap"};

/// Inputs x, pads, constant_value (optional), axes (optional); before opset 11 `pads` and `value` are attributes.
struct Pad {
  struct Attrs {
    PadMode mode = PadMode::constant;
    std::vector<int64_t> pads;  ///< all begins, then all ends
    double value = 0;
    static void each(auto& s, auto&& field) {
      field("mode", s.mode);
      field("pads", s.pads);
      field("value", s.value);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

}  // namespace opfuse
