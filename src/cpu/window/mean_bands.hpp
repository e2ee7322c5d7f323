// Into how many bands the rows of a map are cut, whose means its kernel sums.
#pragma once

#include "kernel/spec.hpp"

namespace opfuse {

/// As many as its rows are cut into parts without means, where that divides them: a depthwise convolution in halves, so
/// that two workers have half of the map each. `region` makes the map.
int64_t mean_bands(const Region& region, const TargetInfo& target);

}  // namespace opfuse
