// What calibration knows of one tensor: ranges, then a histogram between them. Its size does not depend on the number
// of samples.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "opfuse/array_view.hpp"

namespace opfuse::quantization {

inline constexpr int kBins = 2048;

struct TensorStatistics {
  std::string tensor;
  int axis = -1;  ///< of channels whose means are taken; -1: none
  int64_t samples = 0, elements = 0;
  double low = 0, high = 0;                           ///< of all elements
  double mean_low = 0, mean_high = 0;                 ///< moving averages of the samples' ranges
  std::vector<double> channel_sums, channel_squares;  ///< by channel, like the next two
  std::vector<double> channel_low, channel_high;
  int64_t per_channel = 0;    ///< elements that each of them sums
  int64_t zeros = 0;          ///< elements that are 0: no step rounds them
  std::vector<int64_t> bins;  ///< kBins equal parts of [low, high]; empty before the second pass
  bool operator==(const TensorStatistics&) const = default;

  double channel_mean(size_t channel) const;
};

/// First pass. False when an element is NaN or infinite; then nothing was taken.
bool take_range(TensorStatistics& statistics, const ArrayView& array);
/// Second pass, with the ranges of the first.
void take_bins(TensorStatistics& statistics, const ArrayView& array);

}  // namespace opfuse::quantization
