// Named structures beyond the catalogue: what a person sees across modules. A compound claims no nodes and makes no
// module, so the counts of modules are those of the catalogue; which kernels its nodes run in is the plan's doing, and
// a compound tells it: one group, or several and the reason on the edge between them.
#pragma once

#include "fusion/explain/explain.hpp"
#include "shape/verdict.hpp"
#include "target/target.hpp"

namespace opfuse {

struct CompoundPattern {
  std::string name;  ///< "GatedMLP"
  std::string doc;
  Pattern topology;
  std::vector<MatchPredicate> where = {};
};

/// LinearAdd, AddLayerNorm, LayerScaleAdd, SqueezeExcite, NormLinear, GatedMLP, ConvElementwise.
const std::vector<CompoundPattern>& compound_patterns();

/// The name of Linears of one value, which have no common last node: found by their operand, not by a topology.
inline constexpr const char* kSiblingLinears = "SiblingLinears";
inline constexpr const char* kSiblingLinearsDoc = "Two or more Linears of one value, each with its bias.";

struct Compound {
  std::string name;
  std::vector<std::string> nodes;   ///< in topological order
  std::vector<std::string> groups;  ///< ids of the plan's groups that hold them; a node in none stands for itself
  std::optional<Decline> reason;    ///< several groups: why the first edge between two of them is not fused
};

/// All compounds of the graph the plan was made for, in topological order of their last nodes; a match inside a larger
/// one of the same name is left out.
std::vector<Compound> compounds(const Graph& graph, const FusionPlan& plan);

/// Kind "compound", code "one_group" or that of the reason, evidence: the groups. Of SiblingLinears and of a
/// GatedMLP what compiling makes of them: `shaping` of the plan's fused graph, null where the target has no shaping. By
/// the rates of `cpu` a NormLinear has what one kernel would save.
std::vector<Remark> compound_remarks(const Graph& graph, const FusionPlan& plan,
                                     const std::vector<ShapeVerdict>* shaping = nullptr,
                                     const TargetInfo* cpu = nullptr);

}  // namespace opfuse
