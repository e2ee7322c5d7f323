// Counts of numbers in equal bins that double their width as the range grows. What is counted depends on the numbers
// alone, not on their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace opfuse::quantization {

inline constexpr int kBins = 2048;

struct Histogram {
  int exponent = 0;             ///< a bin is 2^exponent wide
  int64_t first = 0;            ///< bin b holds numbers from (first + b) 2^exponent up to the next bin's
  std::vector<int64_t> counts;  ///< kBins, of which more than half lie between the ends; empty: nothing was counted
  bool operator==(const Histogram&) const = default;

  bool empty() const { return counts.empty(); }
  double width() const;
  double edge(size_t bin) const;  ///< its lower end
  /// The bin whose lower end is 0; kBins where there is none. Numbers that are 0 are counted there.
  size_t bin_of_zero() const;

  /// Bins for low to high, which hold all that was counted.
  void cover(double low, double high);
  /// Numbers that cover() was told of, finite all; how many of them are 0.
  int64_t add(const float* numbers, int64_t count);
};

}  // namespace opfuse::quantization
