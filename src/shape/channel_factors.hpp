// Gates: the product of a map and a factor per channel joins the 1x1 convolution that alone reads it.
//
//     t -- M: * g[n,c,1,1] -- C: convolution -- y
//     t, g -- [M, C] -- y
//
// The kernel multiplies its weights by the gate instead of the map, which is then neither stored nor read again. The
// plan, its groups and their counts do not change.
#pragma once

#include "shape/chains.hpp"

namespace opfuse {

std::vector<ChainVerdict> join_channel_factors(Graph& fused, const ChainAdvice& advice);

}  // namespace opfuse
