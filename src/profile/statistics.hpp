// Summaries of repeated measurements, and how sure one can be of a ratio.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace opfuse {

/// Order statistics of a sample; all zero when it is empty. `cv`: standard deviation / mean.
struct Summary {
  size_t count = 0;
  double min = 0, median = 0, p90 = 0, p95 = 0, p99 = 0, max = 0, mean = 0, cv = 0;
};
Summary summarize(std::vector<double> sample);

/// Linear interpolation between order statistics; `percent` in [0, 100]; 0 for an empty sample.
double percentile(std::vector<double> sample, double percent);

/// An estimate with a confidence interval.
struct Interval {
  double low = 0, estimate = 0, high = 0;
};

/// median(a) / median(b) with its 95 % interval by a bootstrap of blocks: samples in the order in which they were
/// taken. Seeded: the same samples give the same interval. Of more than 20,000 every k-th is resampled; the estimate is
/// that of all.
Interval ratio_of_medians(const std::vector<double>& a, const std::vector<double>& b, uint64_t seed,
                          int resamples = 1000);

}  // namespace opfuse
