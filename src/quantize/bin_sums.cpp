// An element counts as the middle of its bin, between the tensor's ends; zeros as 0.
#include "quantize/bin_sums.hpp"

#include <algorithm>
#include <cmath>

namespace opfuse::quantization {

BinSums::BinSums(const TensorStatistics& s)
    : low_(s.low),
      high_(s.high),
      edge_(s.histogram.edge(0)),
      width_(s.histogram.width()),
      zeros_(static_cast<double>(s.zeros)) {
  const size_t of_zero = s.histogram.bin_of_zero();
  for (size_t b = 0; b < kBins; ++b) {
    const double x = std::clamp(edge_ + width_ * (static_cast<double>(b) + 0.5), low_, high_);
    const auto n = static_cast<double>(s.histogram.counts[b]);
    const double moved = b == of_zero ? std::max(0.0, n - zeros_) : n;
    counts_[b + 1] = counts_[b] + n;
    sums_[b + 1] = sums_[b] + moved * x;
    squares_[b + 1] = squares_[b] + moved * x * x;
  }
}

size_t BinSums::bin_at(double x) const {
  if (x >= high_ - width_ / 2) return kBins;
  if (x <= low_ + width_ / 2) return 0;
  return static_cast<size_t>(std::clamp(std::nearbyint((x - edge_) / width_), 0.0, static_cast<double>(kBins)));
}

double BinSums::error(double low, double high, double step) const {
  const size_t from = bin_at(low), to = std::max(from, bin_at(high));
  const auto clipped = [](double n, double sum, double squares, double at) {
    return std::max(0.0, squares - 2 * at * sum + at * at * n);
  };
  const double below = clipped(counts_[from], sums_[from], squares_[from], low);
  const double above =
      clipped(counts_.back() - counts_[to], sums_.back() - sums_[to], squares_.back() - squares_[to], high);
  const double inside = std::max(0.0, counts_[to] - counts_[from] - zeros_);
  return below + above + inside * step * step / 12;
}

double BinSums::beyond(double low, double high) const {
  const size_t from = bin_at(low), to = std::max(from, bin_at(high));
  return counts_[from] + counts_.back() - counts_[to];
}

}  // namespace opfuse::quantization
