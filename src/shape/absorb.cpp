// One movement at a time, nearest first: the group with it must still be one kernel.
#include "shape/absorb.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/outline.hpp"
#include "match/attention.hpp"

namespace opfuse {

bool moves_elements(const Node& node) {
  static constexpr std::array kNames{"reshape", "flatten", "squeeze", "unsqueeze", "identity", "transpose",
                                     "slice",   "split",   "gather",  "expand",    "tile"};
  if (node.body || std::none_of(kNames.begin(), kNames.end(), [&](const char* name) { return node.is(name); }))
    return false;
  for (size_t i = 1; i < node.inputs.size(); ++i)
    if (node.inputs[i] && !node.inputs[i]->is_constant()) return false;
  return !node.is("gather") || node.input(1)->constant->elements() == 1;
}

bool is_attention(const Node& node) {
  return node.op == fused_op() && std::any_of(node.body->nodes().begin(), node.body->nodes().end(),
                                              [](const Node* n) { return operator_name(*n) == kAttention; });
}

static bool is_rotary(const Node& node) {
  const auto turns = [](const Node* n) { return n->body && operator_name(*n) == kRotaryEmbedding; };
  if (node.op != fused_op()) return turns(&node);
  const auto& nodes = node.body->nodes();
  return std::any_of(nodes.begin(), nodes.end(), turns) &&
         std::all_of(nodes.begin(), nodes.end(), [&](const Node* n) { return turns(n) || moves_elements(*n); });
}

bool takes_movements(const Node& node) { return is_attention(node) || is_rotary(node); }

namespace {

/// The group grown by a node, or null (and nothing changed) where that is no kernel.
Node* join(Graph& graph, const std::vector<Node*>& nodes, const Node& group, const Legality& legal) {
  const Outline how{fused_op(), group.label.empty() ? std::string(operator_name(group)) : group.label, group.pattern};
  const OutlinedCopy trial = outline_copy(graph, nodes, how);
  if (trial.node->outputs.size() != group.outputs.size() || legal(*trial.node)) return nullptr;
  Node* joined = outline(graph, nodes, how);
  expand_groups(*joined->body);
  return joined;
}

/// A movement in front of operand `index`: the group gets a copy of it.
Node* absorb_operand(Graph& graph, Node* group, size_t index, const Legality& legal) {
  Value* operand = group->inputs[index];
  if (!operand || !operand->producer || !moves_elements(*operand->producer)) return nullptr;
  const Node& movement = *operand->producer;
  Node* copy =
      graph.add_node(movement.op, movement.attrs_, movement.inputs, movement.outputs.size(), movement.sources, group);
  for (size_t i = 0; i < group->inputs.size(); ++i)
    if (group->inputs[i] == operand) graph.set_input(group, i, copy->outputs[operand->result]);
  if (Node* joined = join(graph, {copy, group}, *group, legal)) return joined;
  for (size_t i = 0; i < group->inputs.size(); ++i)
    if (group->inputs[i] == copy->outputs[operand->result]) graph.set_input(group, i, operand);
  graph.erase(copy);
  return nullptr;
}

/// The movement that alone reads the result.
Node* absorb_result(Graph& graph, Node* group, const Legality& legal) {
  const Value* result = group->output();
  if (group->outputs.size() != 1 || graph.read_count(result) != 1 || result->uses.size() != 1) return nullptr;
  Node* movement = result->uses[0].node;
  const bool moves = moves_elements(*movement) && movement->outputs.size() == 1 && result->uses[0].index == 0;
  return moves ? join(graph, {group, movement}, *group, legal) : nullptr;
}

/// A rotary embedding's results go to attention, which takes what is behind them.
size_t absorb_around(Graph& graph, Node* group, const Legality& legal) {
  size_t count = 0;
  for (bool grown = true; grown;) {
    grown = false;
    Node* next = is_attention(*group) ? absorb_result(graph, group, legal) : nullptr;
    for (size_t i = 0; !next && i < group->inputs.size(); ++i) next = absorb_operand(graph, group, i, legal);
    if (!next) continue;
    group = next;
    grown = true;
    ++count;
  }
  return count;
}

}  // namespace

std::vector<std::string> absorb_movements(Graph& fused, const Legality& legal) {
  std::vector<Node*> takers;  // the nodes around them go while they grow
  for (Node* node : fused.nodes())
    if (takes_movements(*node)) takers.push_back(node);
  struct Count {
    size_t groups = 0, movements = 0;
  } attentions, rotary;
  for (Node* node : takers) {
    if (legal(*node)) continue;
    Count& kind = is_attention(*node) ? attentions : rotary;
    const size_t count = absorb_around(fused, node, legal);
    kind.groups += count > 0;
    kind.movements += count;
  }
  fused.remove_dead_nodes();
  std::vector<std::string> lines;
  if (attentions.movements > 0)
    lines.push_back(fmt::format("{} attention group{} read and store through {} movements of elements",
                                attentions.groups, attentions.groups == 1 ? "" : "s", attentions.movements));
  if (rotary.movements > 0)
    lines.push_back(fmt::format("{} rotary embedding{} read through {} movements of elements", rotary.groups,
                                rotary.groups == 1 ? "" : "s", rotary.movements));
  return lines;
}

}  // namespace opfuse
