#include "driver/both_branches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "ops/choose.hpp"
#include "ops/is_a.hpp"
#include "ops/where.hpp"

namespace opfuse {
namespace {

bool is_choice(const Node& node) {
  if (!is_a<Where>(node)) return is_a<Choose>(node);
  return !node.sources.empty() && node.sources[0].domain.empty() && node.sources[0].op_type == "If";
}

/// Nodes whose results nothing reads but the choice, and others of them.
std::unordered_set<const Node*> nodes_only_for(const Graph& graph, const Node& choice) {
  std::unordered_set<const Node*> inside{&choice};
  const std::vector<Node*>& nodes = graph.nodes();
  const size_t end = graph.position(&choice);
  for (size_t i = end; i-- > 0;) {
    const Node* node = nodes[i];
    if (node->output() == choice.inputs[0]) continue;  // the condition
    const bool only = std::all_of(node->outputs.begin(), node->outputs.end(), [&](const Value* v) {
      return !graph.is_output(v) &&
             std::all_of(v->uses.begin(), v->uses.end(), [&](const Use& use) { return inside.contains(use.node); });
    });
    if (only) inside.insert(node);
  }
  inside.erase(&choice);
  return inside;
}

/// An axis that is gathered from has elements if there are indices: that always holds of positions that were found.
bool only_not_empty(const DimRelation& r) { return r.rule == DimRule::at_least && r.b.op() == DimOp::min; }

}  // namespace

std::vector<std::string> notes_on_branches(const Graph& graph, const std::vector<DimConstraint>& constraints) {
  std::vector<std::string> notes;
  for (const Node* node : graph.nodes()) {
    if (!is_choice(*node)) continue;
    std::unordered_set<std::string> names;
    for (const Node* inner : nodes_only_for(graph, *node)) names.insert(inner->name());
    std::string first;
    size_t count = 0;
    for (const DimConstraint& c : constraints) {
      if (symbols_of(c.relation).empty() || only_not_empty(c.relation) || !names.contains(c.node)) continue;
      if (count++ == 0) first = fmt::format("{} ({})", text_of(c.relation), c.node);
    }
    if (count == 0) continue;
    notes.push_back(
        fmt::format("If \"{}\": both branches are computed, so a run of other sizes is refused, "
                    "whichever is taken: {}{}",
                    node->name(), first, count > 1 ? fmt::format(" and {} more", count - 1) : ""));
  }
  return notes;
}

}  // namespace opfuse
