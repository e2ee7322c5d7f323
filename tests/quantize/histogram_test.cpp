// Bins that grow: the counts are those of bins that had the last range from the start.
#include "quantize/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <numeric>

namespace opfuse::quantization {
namespace {

std::vector<float> waves(size_t count, double scale, double offset) {
  std::vector<float> x(count);
  for (size_t i = 0; i < count; ++i)
    x[i] = i % 7 == 0 ? 0.0f : static_cast<float>(offset + scale * std::sin(0.37 * double(i)));
  return x;
}

/// Taken one after another, as calibration does.
Histogram taken(const std::vector<std::vector<float>>& parts, int64_t* zeros = nullptr) {
  Histogram h;
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const std::vector<float>& x : parts) {
    low = std::min(low, double(*std::min_element(x.begin(), x.end())));
    high = std::max(high, double(*std::max_element(x.begin(), x.end())));
    Histogram::Counting counting(h);
    counting.cover(low, high);
    const int64_t of_zero = counting.add(x.data(), static_cast<int64_t>(x.size()));
    if (zeros) *zeros += of_zero;
  }
  return h;
}

TEST(Histogram, CountsEveryNumberInItsBin) {
  for (const double scale : {1e-30, 0.01, 3.0, 1e30}) {
    const std::vector<float> x = waves(9973, scale, scale / 3);  // more than are counted one by one
    int64_t zeros = 0;
    const Histogram h = taken({x}, &zeros);
    EXPECT_EQ(zeros, std::count(x.begin(), x.end(), 0.0f));
    std::vector<int64_t> want(kBins);
    size_t used = 0;
    for (float v : x) {
      const double at = std::floor(double(v) / h.width()) - double(h.first);
      ASSERT_TRUE(at >= 0 && at < kBins);
      ++want[static_cast<size_t>(at)], used = std::max(used, static_cast<size_t>(at) + 1);
    }
    EXPECT_EQ(h.counts, want);
    EXPECT_GT(used, size_t{kBins} / 2);
    EXPECT_GE(h.counts[h.bin_of_zero()], zeros);
  }
}

/// Growing loses nothing: neither the order of samples nor the steps of growth show.
TEST(Histogram, IsTheSameInAnyOrder) {
  std::vector<std::vector<float>> parts{waves(500, 1e-3, 0), waves(700, 1, 0.5), waves(5000, 0.2, -3),
                                        waves(60, 900, 10)};
  const Histogram first = taken(parts);
  std::reverse(parts.begin(), parts.end());
  EXPECT_EQ(taken(parts), first);
  std::vector<float> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  EXPECT_EQ(taken({all}), first);
  EXPECT_EQ(std::accumulate(first.counts.begin(), first.counts.end(), int64_t{0}), 6260);
}

TEST(Histogram, OddNumbersHaveBins) {
  for (const std::vector<float>& x : std::vector<std::vector<float>>{
           {0}, {3, 3}, {-FLT_MAX, FLT_MAX}, {1e-45f, 0}, {1e6f, 1e6f + 0.0625f}, {-5, -2}, {-0.0f, 1}, {2, 4096}}) {
    const Histogram h = taken({x});
    EXPECT_EQ(std::accumulate(h.counts.begin(), h.counts.end(), int64_t{0}), static_cast<int64_t>(x.size()));
    EXPECT_TRUE(std::isfinite(h.width()) && h.width() > 0);
    EXPECT_LE(h.edge(0), double(*std::min_element(x.begin(), x.end())));
    EXPECT_GT(h.edge(kBins), double(*std::max_element(x.begin(), x.end())));
  }
}

}  // namespace
}  // namespace opfuse::quantization
