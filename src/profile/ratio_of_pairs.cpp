// Quotients of pairs are resampled as wholes, so the interval is as wide as they differ, not as the machine drifts.
#include "profile/ratio_of_pairs.hpp"

#include <algorithm>
#include <random>

namespace opfuse {

Interval ratio_of_pairs(const std::vector<double>& a, const std::vector<double>& b, uint64_t seed, int resamples) {
  Interval interval;
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (b[i] > 0) ratios.push_back(a[i] / b[i]);
  if (ratios.empty()) return interval;
  interval.estimate = percentile(ratios, 50);
  std::mt19937_64 random(seed);
  std::vector<double> drawn(ratios.size()), medians;
  for (int i = 0; i < resamples; ++i) {
    for (double& value : drawn) value = ratios[random() % ratios.size()];
    medians.push_back(percentile(drawn, 50));
  }
  interval.low = std::min(interval.estimate, percentile(medians, 2.5));
  interval.high = std::max(interval.estimate, percentile(medians, 97.5));
  return interval;
}

}  // namespace opfuse
