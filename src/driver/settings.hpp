// What settings of a compilation refuse although the target has a kernel for it. The codes are rows of
// fusion/reasons.def that say so.
#pragma once

#include "fusion/price.hpp"
#include "opfuse/opfuse.hpp"

namespace opfuse {

/// Prices as the target has them, but for groups that the request refuses.
Pricing pricing_within(const PlanRequest& request, Pricing price);

}  // namespace opfuse
