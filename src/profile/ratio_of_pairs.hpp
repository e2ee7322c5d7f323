// A ratio of measurements that were taken in turns.
#pragma once

#include "profile/statistics.hpp"

namespace opfuse {

/// Median of a[i] / b[i], of as many pairs as both have, with its 95 % bootstrap interval. Neighbours in time: what a
/// busy machine or its clock does for a while is in both. Seeded.
Interval ratio_of_pairs(const std::vector<double>& a, const std::vector<double>& b, uint64_t seed,
                        int resamples = 1000);

}  // namespace opfuse
