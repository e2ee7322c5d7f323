// Weights as i8 codes, a scale for each output channel, zero points 0.
#pragma once

#include <vector>

#include "tensor/tensor.hpp"

namespace opfuse::quantization {

struct WeightCodes {
  Tensor codes, scales, zeros;  ///< i8 as the weights; f32 and i8 by output channel
  double sqnr = 0;              ///< dB
  int64_t dead = 0;             ///< channels whose weights are all 0

  /// Weight i as its code says it.
  double real(int64_t i, size_t axis) const;
};

/// `least`: scales that are needed at least, by channel, for the bias to fit i32; empty: none. Not `per_channel`: all
/// scales are the same. Weights of a window of several taps ([O, C, taps...], axis 0) are rounded so that its sum
/// keeps.
WeightCodes weight_codes(const Tensor& weights, size_t axis, const std::vector<double>& least = {},
                         bool per_channel = true);

/// Bias as i32 codes of the scale s_x s_w.
struct BiasCodes {
  Tensor codes, scales;
};
BiasCodes bias_codes(const std::vector<double>& bias, float data_scale, const Tensor& weight_scales);
/// The scales of weights for which such a bias stays below half of i32.
std::vector<double> least_scales(const std::vector<double>& bias, float data_scale);

}  // namespace opfuse::quantization
