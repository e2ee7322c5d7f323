// What calibration knows of one tensor: ranges and a histogram. Its size does not depend on the number of samples.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "opfuse/array_view.hpp"
#include "quantize/histogram.hpp"

namespace opfuse::quantization {

struct TensorStatistics {
  std::string tensor;
  int axis = -1;  ///< of channels whose means are taken; -1: none
  int64_t samples = 0, elements = 0;
  double low = 0, high = 0;                           ///< of all elements
  double mean_low = 0, mean_high = 0;                 ///< moving averages of the samples' ranges
  std::vector<double> channel_sums, channel_squares;  ///< by channel, like the next two
  std::vector<double> channel_low, channel_high;
  int64_t per_channel = 0;  ///< elements that each of them sums
  int64_t zeros = 0;        ///< elements of the histogram that are 0: no step rounds them
  Histogram histogram;      ///< of all elements; empty where none was asked for
  bool operator==(const TensorStatistics&) const = default;

  double channel_mean(size_t channel) const;
  void forget_channels();
};

/// An array of a rank more, whose last axis are neighbouring channels: [.., channels / block, .., block]. Lanes behind
/// the last channel hold nothing that counts.
struct ChannelBlocks {
  size_t axis = 1;
  int64_t channels = 0;
};

/// The array of one sample. False when an element is NaN or infinite: the statistics are of no use then.
bool take_array(TensorStatistics& statistics, const ArrayView& array, bool histogram,
                const std::optional<ChannelBlocks>& blocks = {});

}  // namespace opfuse::quantization
