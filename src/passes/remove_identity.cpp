// identity(x) = x,  dropout(x) = x in inference (its mask must be unread)
// Stays where it connects a graph input, or another output, with a graph output: both names are interface.
#include "passes/passes.hpp"

namespace opfuse {

namespace {

bool is_identity(const Graph& graph, const Node& node) {
  if (node.is("identity")) return true;
  if (!node.is("dropout")) return false;
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (graph.read_count(node.outputs[i]) > 0) return false;
  }
  return true;
}

bool run(Graph& graph, PassContext&) {
  bool changed = false;
  const std::vector<Node*> nodes = graph.nodes();
  for (Node* node : nodes) {
    if (!is_identity(graph, *node) || !graph.can_replace(node->output(), node->input(0))) continue;
    graph.replace_uses(node->output(), node->input(0));
    graph.erase(node);
    changed = true;
  }
  return changed;
}

}  // namespace

Pass remove_identity() { return {"remove-identity", "Removes Identity, and Dropout as inference sees it.", run, {}}; }

}  // namespace opfuse
