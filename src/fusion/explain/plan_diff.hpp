// Two plans side by side: of versions of a model, options, targets or releases. Edges are compared by the names of
// their nodes, so the order of nodes and the names of groups play no part.
#pragma once

#include "fusion/plan.hpp"
#include "opfuse/diff.hpp"

namespace opfuse {

/// E::bad_option where the two have no edge in common. Where both ledgers say what is executed, that is compared; else
/// the groups are.
PlanDiff diff_plans(const FusionPlan& first, const FusionPlan& second);

}  // namespace opfuse
