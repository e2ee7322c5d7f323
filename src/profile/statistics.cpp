// Percentiles by linear interpolation (numpy's default), bootstrap by resampling both sides independently.
#include "profile/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace opfuse {
namespace {

double of_sorted(const std::vector<double>& sorted, double percent) {
  if (sorted.empty()) return 0;
  const double at = std::clamp(percent, 0.0, 100.0) / 100 * static_cast<double>(sorted.size() - 1);
  const size_t low = static_cast<size_t>(at), high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

/// Runs that follow each other share the state of the machine (its clock, its other work), so they are drawn in blocks
/// as long as a turn is in a measurement of the usual length.
constexpr size_t kBlocks = 25;

/// Runs of a bootstrap: a run of a tiny model takes 100 ns, so a measurement has millions, and a thousand resamples of
/// those would take minutes. Every k-th keeps the order and the blocks; the interval can only become wider.
constexpr size_t kMostResampled = 20'000;

std::vector<double> thinned(const std::vector<double>& sample) {
  if (sample.size() <= kMostResampled) return sample;
  const size_t step = (sample.size() + kMostResampled - 1) / kMostResampled;
  std::vector<double> kept;
  for (size_t i = 0; i < sample.size(); i += step) kept.push_back(sample[i]);
  return kept;
}

/// Median of a resample of `from`, drawn into `into` block by block, in a circle.
double resampled_median(const std::vector<double>& from, std::vector<double>& into, std::mt19937_64& random) {
  const size_t block = std::max<size_t>(1, from.size() / kBlocks);
  for (size_t i = 0, at = 0; i < into.size(); ++i, ++at) {
    if (i % block == 0) at = random() % from.size();
    into[i] = from[at % from.size()];
  }
  const auto middle = into.begin() + static_cast<std::ptrdiff_t>(into.size() / 2);
  std::nth_element(into.begin(), middle, into.end());
  if (into.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(into.begin(), middle)) / 2;
}

}  // namespace

double percentile(std::vector<double> sample, double percent) {
  std::sort(sample.begin(), sample.end());
  return of_sorted(sample, percent);
}

Summary summarize(std::vector<double> sample) {
  Summary s;
  if (sample.empty()) return s;
  std::sort(sample.begin(), sample.end());
  s.count = sample.size();
  s.min = sample.front();
  s.max = sample.back();
  s.median = of_sorted(sample, 50);
  s.p90 = of_sorted(sample, 90);
  s.p95 = of_sorted(sample, 95);
  s.p99 = of_sorted(sample, 99);
  s.mean = std::accumulate(sample.begin(), sample.end(), 0.0) / static_cast<double>(s.count);
  double squares = 0;
  for (double value : sample) squares += (value - s.mean) * (value - s.mean);
  s.cv = s.mean > 0 ? std::sqrt(squares / static_cast<double>(s.count)) / s.mean : 0;
  return s;
}

Interval ratio_of_medians(const std::vector<double>& a, const std::vector<double>& b, uint64_t seed, int resamples) {
  Interval interval;
  if (a.empty() || b.empty()) return interval;
  interval.estimate = percentile(a, 50) / percentile(b, 50);
  std::mt19937_64 random(seed);
  const std::vector<double> some_a = thinned(a), some_b = thinned(b);
  std::vector<double> from_a(some_a.size()), from_b(some_b.size()), ratios;
  for (int i = 0; i < resamples; ++i) {
    const double upper = resampled_median(some_a, from_a, random);
    ratios.push_back(upper / resampled_median(some_b, from_b, random));
  }
  std::sort(ratios.begin(), ratios.end());
  interval.low = std::min(interval.estimate, of_sorted(ratios, 2.5));
  interval.high = std::max(interval.estimate, of_sorted(ratios, 97.5));
  return interval;
}

}  // namespace opfuse
