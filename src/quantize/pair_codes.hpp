// Codes of weights that fit the 16 bits of vpmaddubsw. Without VNNI, ONNX Runtime and oneDNN (OpenVINO) multiply u8 by
// i8 with it: the products of two neighbouring input channels are added in 16 bits and saturate, silently. With data of
// at most 255, two weights of one sign may be 128 codes together (255 * 128 = 32640).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/tensor.hpp"

namespace opfuse::quantization {

/// Of one output channel in the order that runtimes add: input channels of a tap follow each other. Pairs are aligned
/// where the number of channels is even; where it is odd any two neighbours may be a pair.
class PairOrder {
 public:
  /// Weights [O, C, taps...] with axis 0, [K, N] with axis 1; `axis`: the output channels'.
  PairOrder(const std::vector<int64_t>& sizes, size_t axis);

  int64_t outputs() const { return outputs_; }
  int64_t length() const { return inputs_ * taps_; }
  int64_t index(int64_t output, int64_t place) const;
  /// The first of a pair; the next one is this many places on.
  int64_t step() const { return inputs_ % 2 == 0 ? 2 : 1; }
  /// Whether `codes` (of the whole tensor) may have `code` at element `i`: |code| is at most 127, and pairs fit.
  bool allows(std::span<const int8_t> codes, int64_t i, int code) const;

 private:
  int64_t place(int64_t element) const;

  int64_t outputs_, inputs_, taps_ = 1;
  int64_t output_step_, input_step_;
};

/// Two codes of a pair fit.
bool pair_fits(int a, int b);

/// By output channel, what its scale is multiplied with so that the error of codes that fit is least: 1 to 2.
std::vector<float> pair_factors(const Tensor& weights, std::span<const float> scales, const PairOrder& order,
                                bool per_channel);

/// Codes that do not fit become the nearest that do; how many moved.
int64_t fit_pairs(const Tensor& weights, std::span<const float> scales, const PairOrder& order,
                  std::span<int8_t> codes);

}  // namespace opfuse::quantization
