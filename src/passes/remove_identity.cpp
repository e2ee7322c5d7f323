// identity(x) = x,  dropout(x) = x in inference (its mask must be unread),  where(all true, x, y) = x,
// where(all false, x, y) = y: the rows of a mask that was folded
// Stays where it connects a graph input, or another output, with a graph output: both names are interface.
#include "passes/passes.hpp"

namespace opfuse {

namespace {

/// Whether a constant of booleans is the same everywhere.
std::optional<bool> everywhere(const Value* condition) {
  if (!condition || !condition->is_constant()) return std::nullopt;
  const Tensor& t = *condition->constant;
  for (int64_t i = 1; i < t.elements(); ++i)
    if ((t.integer(i) != 0) != (t.integer(0) != 0)) return std::nullopt;
  return t.elements() == 0 ? std::nullopt : std::optional(t.integer(0) != 0);
}

/// The operand that the node's result is; null: none.
Value* same_as(const Graph& graph, const Node& node) {
  if (node.is("identity")) return node.input(0);
  if (node.is("where")) {
    const std::optional<bool> first = everywhere(node.input(0));
    Value* chosen = first ? node.input(*first ? 1 : 2) : nullptr;
    return chosen && chosen->type == node.output()->type ? chosen : nullptr;  // not where it is broadcast
  }
  if (!node.is("dropout")) return nullptr;
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (graph.read_count(node.outputs[i]) > 0) return nullptr;
  }
  return node.input(0);
}

bool run(Graph& graph, PassContext&) {
  bool changed = false;
  const std::vector<Node*> nodes = graph.nodes();
  for (Node* node : nodes) {
    Value* operand = same_as(graph, *node);
    if (!operand || !graph.can_replace(node->output(), operand)) continue;
    graph.replace_uses(node->output(), operand);
    graph.erase(node);
    changed = true;
  }
  return changed;
}

}  // namespace

Pass remove_identity() {
  return {"remove-identity",
          "Removes Identity, Dropout as inference sees it, and Where with one constant condition.",
          run,
          {}};
}

}  // namespace opfuse
