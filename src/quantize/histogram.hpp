// Counts of numbers in equal bins that double their width as the range grows. What is counted depends on the numbers
// alone, not on their order.
#pragma once

#include <array>
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
  class Counting;
};

/// Adds numbers to a histogram. Counters are narrow, so that they stay in L1; the histogram has all counts when this
/// ends.
class Histogram::Counting {
 public:
  explicit Counting(Histogram& histogram);
  Counting(const Counting&) = delete;
  ~Counting() { flush(); }

  /// Bins for low to high at least.
  void cover(double low, double high);
  /// Numbers that cover() was told of, finite all; how many of them are 0.
  int64_t add(const float* numbers, int64_t amount);

 private:
  static constexpr size_t kTurns = 8;  // counters of one bin: equal neighbours would wait for each other's store

  void count(const uint16_t* bins, size_t count);
  void flush();

  Histogram& histogram_;
  double low_ = 0, high_ = 0;  ///< covered, where `covered_`
  bool covered_ = false;
  size_t held_ = 0;  ///< the most that a counter can have
  std::array<std::array<uint16_t, kBins>, kTurns> counters_{};
};

}  // namespace opfuse::quantization
