// Least and largest number and sums of each of 16 lanes, the part of statistics that every number passes through.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace opfuse::quantization {

/// What one look at numbers gives.
struct NumberRange {
  float low = HUGE_VALF, high = -HUGE_VALF;
  bool finite = true;
  double sum = 0, squares = 0;

  void join(const NumberRange& other) {
    low = std::min(low, other.low), high = std::max(high, other.high);
    finite = finite && other.finite;
    sum += other.sum, squares += other.squares;
  }
};

inline constexpr size_t kLanes = 16;

/// Number i of a row is in lane i % kLanes.
struct LaneRanges {
  std::array<float, kLanes> low, high;
  std::array<double, kLanes> sum{}, squares{};
  bool finite = true;

  NumberRange lane(size_t l) const { return {low[l], high[l], finite, sum[l], squares[l]}; }
  NumberRange all() const;
};

/// `sums`: these too.
LaneRanges lane_ranges(const float* numbers, int64_t count, bool sums);

}  // namespace opfuse::quantization
