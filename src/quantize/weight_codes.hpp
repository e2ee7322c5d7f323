// Weights as i8 codes, a scale for each output channel, zero points 0.
#pragma once

#include <string_view>
#include <vector>

#include "tensor/tensor.hpp"

namespace opfuse::quantization {

struct WeightCodes {
  Tensor codes, scales, zeros;  ///< i8 as the weights; f32 and i8 by output channel
  double sqnr = 0;              ///< dB
  int64_t dead = 0;             ///< channels whose weights are all 0
  int64_t moved = 0;            ///< codes that are not the nearest, for the sum of their window
  int64_t cut = 0;              ///< codes that are not the nearest, for a pair to fit
};

struct WeightOptions {
  std::vector<double> least;  ///< scales that are needed at least, by channel, for the bias to fit i32; empty: none
  bool per_channel = true;    ///< else all scales are the same
  bool window_sums = true;    ///< windows of several taps ([O, C, taps...], axis 0) are rounded so that their sums keep
  bool int16_pairs = false;   ///< pairs fit 16 bits (quantize/pair_codes.hpp)
};
WeightCodes weight_codes(const Tensor& weights, size_t axis, const WeightOptions& options = {});

/// "int16", "int32": what pairs of products have to fit. E::bad_option.
bool parse_pair_sums(std::string_view text);
const char* pair_sums_name(bool int16_pairs);

/// "window-sums", "nearest". E::bad_option.
bool parse_rounding(std::string_view text);
const char* rounding_name(bool window_sums);

/// Bias as i32 codes of the scale s_x s_w.
struct BiasCodes {
  Tensor codes, scales;
};
BiasCodes bias_codes(const std::vector<double>& bias, float data_scale, const Tensor& weight_scales);
/// The scales of weights for which such a bias stays below half of i32.
std::vector<double> least_scales(const std::vector<double>& bias, float data_scale);

}  // namespace opfuse::quantization
