// Why nodes are or are not fused: from the plan, its ledger and the patterns' best partial matches.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fusion/plan.hpp"
#include "opfuse/remark.hpp"

namespace opfuse {

/// Groups of the plan.
std::vector<Remark> passed(const FusionPlan& plan);
/// Declined candidates, near matches of named patterns, then unfused edges; most bytes first within each kind.
std::vector<Remark> missed(const Graph& graph, const FusionPlan& plan,
                           const std::vector<FusionPattern>& patterns = fusion_patterns());
/// Everything known about one node: its group, all patterns tried there (best partial match first), its edges.
/// E::unknown_name with a did-you-mean when there is no such node.
std::vector<Remark> about_node(const Graph& graph, const FusionPlan& plan, const std::string& node,
                               const std::vector<FusionPattern>& patterns = fusion_patterns());

std::string remarks_json(const std::vector<Remark>& remarks);  ///< {"schema": "opfuse.explain/1", "remarks": [...]}

/// Best attempt of each pattern at the node, as the matcher explains it, one block per pattern.
std::string explain_node(const Graph& graph, const std::string& node,
                         const std::vector<FusionPattern>& patterns = fusion_patterns());

}  // namespace opfuse
