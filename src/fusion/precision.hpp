// The type that products of a plan's groups are computed in: a field of each group, set by rules such as "bf16" (all
// groups) or "f32@NODE" (the group of that node). docs/precision.md.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fusion/plan.hpp"

namespace opfuse {

inline constexpr const char* kFullPrecision = "f32";

struct PrecisionRule {
  std::string precision;  ///< "f32", "bf16", "f16"
  std::string node;       ///< empty: every group
};

/// "bf16", "f32@NODE". E::bad_option for another precision, with those there are.
PrecisionRule parse_precision(std::string_view text);
/// The same for a word of a plan.
void check_precision(const std::string& precision);

/// Sets the precision of groups with products, and of products outside of groups. A rule with a node is stronger than
/// one without, a later one than one before. E::unknown_name for a node that is not in the graph the plan was made for.
void set_precisions(FusionPlan& plan, const Graph& graph, const std::vector<std::string>& rules);

/// What rules ask for a node.
std::string asked_precision(const std::vector<std::string>& rules, const std::string& node);

/// By source name of a node, and by label of a group: where a plan asks for another precision than f32.
std::map<std::string, std::string> precision_of_nodes(const FusionPlan& plan);

/// A convolution or a matrix product.
bool is_product(const Node& node);

}  // namespace opfuse
