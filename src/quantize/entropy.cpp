// For each threshold: P, the magnitudes up to it with those beyond in the last bin; Q, the same without those, its bins
// averaged over each code where P has any. The threshold with the least sum of P log(P / Q) wins. Exact zeros are left
// out: no step rounds them, and behind a Relu they would outweigh the rest.
#include "quantize/entropy.hpp"

#include <algorithm>
#include <cmath>

namespace opfuse::quantization {
namespace {

using Histogram = std::vector<double>;

Histogram magnitudes(const TensorStatistics& s, double most) {
  Histogram folded(kBins);
  const double width = (s.high - s.low) / kBins;
  double zeros = static_cast<double>(s.zeros);
  for (size_t b = 0; b < kBins; ++b) {
    const double left = s.low + width * static_cast<double>(b);
    double n = static_cast<double>(s.bins[b]);
    if (left <= 0 && left + width >= 0) {
      const double taken = std::min(n, zeros);
      n -= taken, zeros -= taken;
    }
    const auto at = static_cast<int64_t>(std::fabs(left + width / 2) / most * kBins);
    folded[static_cast<size_t>(std::min<int64_t>(at, kBins - 1))] += n;
  }
  return folded;
}

/// Sum of P log(P / Q) for the first `kept` bins.
double divergence(const Histogram& bins, size_t kept, size_t levels, double outliers) {
  double sum_p = outliers, sum_q = 0, result = 0;
  for (size_t b = 0; b < kept; ++b) sum_p += bins[b], sum_q += bins[b];
  if (sum_p == 0 || sum_q == 0) return HUGE_VAL;
  for (size_t level = 0; level < levels; ++level) {
    const size_t from = level * kept / levels, to = (level + 1) * kept / levels;
    double total = 0;
    size_t filled = 0;
    for (size_t b = from; b < to; ++b) total += bins[b], filled += bins[b] > 0;
    for (size_t b = from; b < to; ++b) {
      const double p = (bins[b] + (b + 1 == kept ? outliers : 0)) / sum_p;
      if (p <= 0) continue;
      const double q = bins[b] > 0 ? total / static_cast<double>(filled) / sum_q : 0;
      result += p * std::log(p / std::max(q, 1e-12));
    }
  }
  return result;
}

}  // namespace

double entropy_threshold(const TensorStatistics& s, int levels) {
  constexpr size_t kStride = 8;
  const double most = std::max(std::fabs(s.low), std::fabs(s.high));
  if (most == 0) return 0;
  const Histogram bins = magnitudes(s, most);
  double outliers = 0, least = HUGE_VAL;
  size_t best = kBins, counted = kBins;
  for (size_t kept = kBins; kept >= static_cast<size_t>(levels); kept -= kStride) {
    for (; counted > kept; --counted) outliers += bins[counted - 1];
    const double d = divergence(bins, kept, static_cast<size_t>(levels), outliers);
    if (d < least) least = d, best = kept;
  }
  return most * static_cast<double>(best) / kBins;
}

}  // namespace opfuse::quantization
