// What settings of a compilation refuse although the target has a kernel for it. The codes are rows of
// fusion/reasons.def that say so.
#pragma once

#include "fusion/price.hpp"
#include "opfuse/opfuse.hpp"
#include "region/region.hpp"
#include "target/target.hpp"

namespace opfuse {

inline constexpr const char* kNotGenerated = "not_generated";

/// Why the target's generator does not take a region, which is `node`'s: "workspace" where it would with more scratch,
/// else kNotGenerated, which says nothing of the node but its name.
std::optional<Decline> refusal_of(const Region& region, const std::string& node, const TargetInfo& target);

/// Prices as the target has them, but for groups that the request refuses.
Pricing pricing_within(const PlanRequest& request, Pricing price);

}  // namespace opfuse
