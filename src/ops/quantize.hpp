// Linear quantisation, per tensor or along `axis`.
//   quantize_linear    y = saturate(round_half_even(x / scale) + zero_point)      dtype of zero_point (absent: u8)
//                      floats: y = the nearest value of the type to x / scale + zero_point
//   dequantize_linear  y = (x - zero_point) * scale
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

/// Inputs x, scale, zero_point (optional).
struct QuantizeLinear {
  struct Attrs {
    int64_t axis = 1;
    int64_t block_size = 0;               ///< elements of `axis` that share a scale; 0: all, or one
    DType output_dtype = DType::unknown;  ///< opset 21; unknown: that of zero_point, else u8
    bool saturate = true;                 ///< floats: what is too large is the largest value
    DType precision = DType::unknown;     ///< of the division; unknown: that of x
    static void each(auto& s, auto&& field) {
      field("axis", s.axis);
      field("block_size", s.block_size);
      field("output_dtype", s.output_dtype);
      field("saturate", s.saturate);
      field("precision", s.precision);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

/// The type that values are quantised to; that of the zero point is unknown where there is none.
DType quantised_dtype(const QuantizeLinear::Attrs& attrs, DType zero_point);

/// Inputs x, scale, zero_point (optional).
struct DequantizeLinear {
  struct Attrs {
    int64_t axis = 1;
    int64_t block_size = 0;               ///< elements of `axis` that share a scale; 0: all, or one
    DType output_dtype = DType::unknown;  ///< opset 23; unknown: that of scale
    static void each(auto& s, auto&& field) {
      field("axis", s.axis);
      field("block_size", s.block_size);
      field("output_dtype", s.output_dtype);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

}  // namespace opfuse
