// Linear quantisation, per tensor or along `axis`.
//   quantize_linear    y = saturate(round_half_even(x / scale) + zero_point)      dtype of zero_point (absent: u8)
//   dequantize_linear  y = (x - zero_point) * scale
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

/// Inputs x, scale, zero_point (optional).
struct QuantizeLinear {
  struct Attrs {
    int64_t axis = 1;
    int64_t block_size = 0;               ///< blocked quantisation is refused
    DType output_dtype = DType::unknown;  ///< opset 21; unknown: that of zero_point, else u8
    bool saturate = true;
    static void each(auto& s, auto&& field) {
      field("axis", s.axis);
      field("block_size", s.block_size);
      field("output_dtype", s.output_dtype);
      field("saturate", s.saturate);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

/// Inputs x, scale, zero_point (optional).
struct DequantizeLinear {
  struct Attrs {
    int64_t axis = 1;
    int64_t block_size = 0;  ///< blocked quantisation is refused
    static void each(auto& s, auto&& field) {
      field("axis", s.axis);
      field("block_size", s.block_size);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

}  // namespace opfuse
