// Sums over a histogram, so that the error of a range is a few additions.
#pragma once

#include <array>

#include "quantize/tensor_statistics.hpp"

namespace opfuse::quantization {

class BinSums {
 public:
  explicit BinSums(const TensorStatistics& statistics);

  /// Expected sum of squared errors with codes for [low, high], `step` apart.
  double error(double low, double high, double step) const;
  /// Elements outside of [low, high].
  double beyond(double low, double high) const;
  double energy() const { return squares_.back(); }  ///< sum of squares

 private:
  size_t bin_at(double x) const;  ///< bins below x, rounded to the nearest edge; all of them at the tensor's end
  double low_, high_, edge_, width_, zeros_;                     ///< `edge_`: of the first bin
  std::array<double, kBins + 1> counts_{}, sums_{}, squares_{};  ///< of the bins before
};

}  // namespace opfuse::quantization
