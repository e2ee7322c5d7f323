// For each threshold: P, the magnitudes up to it with those beyond in the last bin; Q, the same without those, its bins
// averaged over each code where P has any. The threshold with the least sum of P log(P / Q) wins. Exact zeros are left
// out: no step rounds them, and behind a Relu they would outweigh the rest.
#include "quantize/entropy.hpp"

#include <algorithm>
#include <cmath>

namespace opfuse::quantization {
namespace {

using Counts = std::vector<double>;

/// Counts by magnitude, in bins of `width`; at most kBins.
struct Magnitudes {
  Counts counts;
  double width = 0;
};

Magnitudes magnitudes(const Histogram& h, int64_t zeros) {
  const int64_t last = h.first + kBins - 1;
  const int64_t most = std::max(last >= 0 ? last : 0, h.first < 0 ? -h.first - 1 : 0);
  int coarser = 0;  // numbers that lie close together far from 0 have bins that are much narrower than they are large
  while ((most >> coarser) >= kBins) ++coarser;
  Magnitudes folded{Counts(static_cast<size_t>(most >> coarser) + 1), std::ldexp(h.width(), coarser)};
  for (size_t b = 0; b < kBins; ++b) {
    const int64_t at = h.first + static_cast<int64_t>(b);
    const int64_t counted = std::max<int64_t>(0, h.counts[b] - (b == h.bin_of_zero() ? zeros : 0));
    folded.counts[static_cast<size_t>((at < 0 ? -at - 1 : at) >> coarser)] += static_cast<double>(counted);
  }
  while (folded.counts.size() > 1 && folded.counts.back() == 0) folded.counts.pop_back();
  return folded;
}

/// Sum of P log(P / Q) for the first `kept` bins.
double divergence(const Counts& bins, size_t kept, size_t levels, double outliers) {
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
  const auto [bins, width] = magnitudes(s.histogram, s.zeros);
  double outliers = 0, least = HUGE_VAL;
  size_t best = bins.size(), counted = bins.size();
  for (size_t kept = bins.size(); kept >= static_cast<size_t>(levels); kept -= std::min(kept, kStride)) {
    for (; counted > kept; --counted) outliers += bins[counted - 1];
    const double d = divergence(bins, kept, static_cast<size_t>(levels), outliers);
    if (d < least) least = d, best = kept;
  }
  return std::min(most, width * static_cast<double>(best));
}

}  // namespace opfuse::quantization
