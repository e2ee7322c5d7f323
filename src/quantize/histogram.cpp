//     2^e   |.|.|.|.|.|.|.|.|        edges are multiples of the width, so bins of 2^e fall into bins of 2^(e + 1)
//     2^e+1 |...|...|...|...|        as a whole: nothing is counted again, and nothing moves to a neighbour
//
// x / 2^e is exact in f32 wherever the quotient is below 2^24, which the least exponent sees to.
#include "quantize/histogram.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace opfuse::quantization {
namespace {

constexpr int kLeastExponent = -126;  // 2^126, the factor, is finite
constexpr int kExactBits = 22;        // of a quotient: more than these the largest number has no digits for

struct Bins {
  int exponent;
  int64_t first;
};

int64_t index_of(double x, int exponent) { return static_cast<int64_t>(std::floor(std::ldexp(x, -exponent))); }

/// The narrowest ones for low to high.
Bins bins_for(double low, double high) {
  int e = kLeastExponent;
  if (const double most = std::max(std::fabs(low), std::fabs(high)); most > 0)
    e = std::max(e, std::ilogb(most) - kExactBits);
  if (high > low) e = std::max(e, std::ilogb((high - low) / kBins));
  while (index_of(high, e) - index_of(low, e) >= kBins) ++e;
  return {e, index_of(low, e)};
}

/// Bins of `count` numbers; how many of them are 0.
[[gnu::always_inline]] inline int32_t bins_body(const float* x, int64_t count, float factor, int32_t first,
                                                int32_t* bins) {
  int32_t zeros = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float quotient = x[i] * factor;
    int32_t at = static_cast<int32_t>(quotient);
    at -= static_cast<float>(at) > quotient ? 1 : 0;  // towards minus infinity
    bins[i] = std::min(std::max(at - first, 0), kBins - 1);
    zeros += x[i] == 0.0f ? 1 : 0;
  }
  return zeros;
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2"))) int32_t bins_avx2(const float* x, int64_t count, float factor, int32_t first,
                                                  int32_t* bins) {
  return bins_body(x, count, factor, first, bins);
}
bool wide_bins() {
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
}
#else
int32_t bins_avx2(const float* x, int64_t count, float factor, int32_t first, int32_t* bins) {
  return bins_body(x, count, factor, first, bins);
}
constexpr bool wide_bins() { return true; }
#endif

int32_t bins_of(const float* x, int64_t count, float factor, int32_t first, int32_t* bins) {
  return wide_bins() ? bins_avx2(x, count, factor, first, bins) : bins_body(x, count, factor, first, bins);
}

/// Equal neighbours would wait for each other's store: four counters take turns. Narrow ones stay in L1.
class Counters {
 public:
  void take(const int32_t* bins, size_t count) {
    size_t i = 0;
    for (; i + 4 <= count; i += 4)
      for (size_t turn = 0; turn < 4; ++turn) ++counters_[turn][static_cast<size_t>(bins[i + turn])];
    for (; i < count; ++i) ++counters_[0][static_cast<size_t>(bins[i])];
  }
  void add_to(std::vector<int64_t>& counts) const {
    for (size_t b = 0; b < kBins; ++b)
      for (const auto& counter : counters_) counts[b] += counter[b];
  }

 private:
  std::array<std::array<uint32_t, kBins>, 4> counters_{};
};

}  // namespace

double Histogram::width() const { return std::ldexp(1.0, exponent); }
double Histogram::edge(size_t bin) const {
  return std::ldexp(static_cast<double>(first + static_cast<int64_t>(bin)), exponent);
}
size_t Histogram::bin_of_zero() const { return first <= 0 && first > -kBins ? static_cast<size_t>(-first) : kBins; }

void Histogram::cover(double low, double high) {
  const Bins bins = bins_for(low, high);
  if (counts.empty()) counts.resize(kBins);
  if (bins.exponent == exponent && bins.first == first) return;
  std::vector<int64_t> moved(kBins);
  for (size_t b = 0; b < kBins; ++b) {
    if (counts[b] == 0) continue;
    const int64_t at = ((first + static_cast<int64_t>(b)) >> (bins.exponent - exponent)) - bins.first;
    moved[static_cast<size_t>(std::clamp<int64_t>(at, 0, kBins - 1))] += counts[b];
  }
  exponent = bins.exponent, first = bins.first, counts = std::move(moved);
}

int64_t Histogram::add(const float* numbers, int64_t count) {
  constexpr int64_t kBlock = 1024, kFew = 2 * kBins, kMostCounted = int64_t{1} << 30;
  const float factor = std::ldexp(1.0f, -exponent);
  const auto from = static_cast<int32_t>(first);
  std::array<int32_t, kBlock> bin;
  int64_t zeros = 0;
  const auto each_block = [&](int64_t begin, int64_t end, auto&& take) {
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t n = std::min(kBlock, end - at);
      zeros += bins_of(numbers + at, n, factor, from, bin.data());
      take(static_cast<size_t>(n));
    }
  };
  if (count <= kFew) {
    each_block(0, count, [&](size_t n) {
      for (size_t i = 0; i < n; ++i) ++counts[static_cast<size_t>(bin[i])];
    });
    return zeros;
  }
  for (int64_t begin = 0; begin < count; begin += kMostCounted) {
    Counters counters;
    each_block(begin, std::min(count, begin + kMostCounted), [&](size_t n) { counters.take(bin.data(), n); });
    counters.add_to(counts);
  }
  return zeros;
}

}  // namespace opfuse::quantization
