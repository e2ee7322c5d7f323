// From statistics to scale and zero point.
#pragma once

#include <string>
#include <string_view>

#include "quantize/tensor_statistics.hpp"

namespace opfuse::quantization {

enum class Method { minmax, ema, percentile, mse, entropy };

struct MethodChoice {
  Method method = Method::mse;
  double percentile = 99.99;
  std::string text() const;
};

/// "minmax", "ema", "percentile=99.99", "mse", "entropy". E::bad_option.
MethodChoice parse_method(std::string_view text);
/// Whether it reads histograms.
bool needs_histograms(const MethodChoice& choice);

/// codes = saturate(round_half_even(x / scale) + zero)
struct Codes {
  DType dtype = DType::u8;
  float scale = 1;
  int32_t zero = 0;
  double low() const;   ///< the smallest real number that has a code of its own
  double high() const;  ///< the largest
  bool operator==(const Codes&) const = default;
};

/// u8: any zero point; i8: zero point 0. 0 always has a code of its own.
Codes codes_of(const TensorStatistics& statistics, const MethodChoice& choice, DType dtype);

/// What the histogram says of codes.
struct CodesLoss {
  double sqnr = 0;       ///< dB, of this tensor's rounding alone
  double saturated = 0;  ///< share of elements beyond the codes
};
CodesLoss loss_of(const TensorStatistics& statistics, const Codes& codes);

}  // namespace opfuse::quantization
