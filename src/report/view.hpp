// What is drawn: nodes, what flows between them, and the units they run in.
//
// A unit is a node of the fused graph: a group of source nodes, or a node alone. The view *before* has the nodes of the
// model, each in the unit that computes it now; the view *after* has one node per unit.
#pragma once

#include <string>
#include <vector>

#include "fusion/plan.hpp"
#include "ir/graph.hpp"
#include "runtime/artifact.hpp"

namespace opfuse::report {

enum class Kind { node, input, output };

struct ViewNode {
  std::string name;   ///< source name; of inputs and outputs the tensor's
  std::string label;  ///< operator or pattern; "" where it is not known
  std::string text;   ///< attributes, or the module's instance
  Kind kind = Kind::node;
  int unit = -1;                       ///< -1: nothing computes it: folded, removed, an input or output
  std::vector<int> reads, results;     ///< values
  std::vector<std::string> sources{};  ///< view after: names of source nodes
};

struct ViewValue {
  std::string name, type;
  int64_t bytes = 0;  ///< open dimensions count 1; -1: not known
  bool constant = false;
};

struct ViewEdge {
  int from = 0, to = 0, value = -1;  ///< nodes; the value that flows
};

struct View {
  std::vector<ViewNode> nodes;
  std::vector<ViewValue> values;
  std::vector<ViewEdge> edges;
};

struct Unit {
  std::string label, pattern;
  std::vector<std::string> sources;
  int64_t bytes_saved = 0;  ///< by the groups of the plan that are in it
  std::vector<int> launches;
};

/// The units of a model and the two views of it.
struct Views {
  std::vector<Unit> units;
  View before, after;
  std::string missing;  ///< why there are none
};

/// `model`: as read. `fused`: what the program is lowered from. `plan`: for the bytes that groups save.
Views views_of(const Graph& model, const Graph& fused, const FusionPlan& plan, const ArtifactProgram& program);
/// Of an .opf, which has no graph but the names of its plan; a unit per launch.
Views views_of(const Artifact& artifact, const ArtifactProgram& program);

/// The nodes within `radius` steps of those called `name` (a node, a source node, a tensor), in either direction.
/// E::unknown_name with a did-you-mean.
View part_of(const View& view, const std::string& name, int radius);

}  // namespace opfuse::report
