// Means: a mean over whole planes is summed by the depthwise group (or chain) that makes the map.
//
//     x -- D: depthwise -- t -- P: mean -- m                 t is read by others too
//     x -- [D, means of bands] -- t, b -- P -- m             b: [n, c, bands, 1]; of one band, b is m
//
// The map is not read again. Each band of rows belongs to one part of the kernel, so equal bands have equal weights in
// the mean of their means. The plan, its groups and their counts do not change.
#pragma once

#include "shape/chains.hpp"

namespace opfuse {

struct MeanAdvice {
  /// Into how many bands a group's rows are cut; a divisor of its rows.
  std::function<int64_t(const Node& map)> bands;
  /// Why the joined node should not be one kernel.
  ChainAdvice joined;
};

std::vector<ChainVerdict> join_means(Graph& fused, const MeanAdvice& advice);

}  // namespace opfuse
