// Movements of elements around attention become part of its loads and stores, those in front of a rotary embedding part
// of its loads.
//
//     qkv -- slice -- reshape -- transpose -- q --.
//     qkv -- slice -- reshape -- transpose -- k -- attention -- transpose -- reshape -- y
//     qkv -- slice -- reshape -- transpose -- v --'
//
// becomes   qkv -- [slice, reshape, transpose, attention, transpose, reshape] -- y
//
// Heads are then cut from the projection where they are read, and merged where they are stored; no copy of q, k, v or
// of the result exists. One movement at a time, nearest first: the group with it must still be one kernel. A movement
// that others read too stays for them.

#include <algorithm>

#include "match/attention.hpp"
#include "match/movement.hpp"
#include "shape/join.hpp"
#include "shape/takes_movements.hpp"

namespace opfuse {

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

/// The group grown by a node, or null (and nothing changed) where that is not a kernel.
Node* grown(Graph& graph, const std::vector<Node*>& nodes, const Node& group, const Legality& legal) {
  const Outline how{fused_op(), group.label.empty() ? std::string(operator_name(group)) : group.label, group.pattern};
  const auto refuses = [&](const Node& trial) -> std::optional<Decline> {
    if (trial.outputs.size() != group.outputs.size()) return Decline{"results", "others read what it takes in", {}};
    return legal(trial);
  };
  const auto joined = outline_unless(graph, nodes, how, refuses);
  return std::holds_alternative<Node*>(joined) ? std::get<Node*>(joined) : nullptr;
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
  if (Node* joined = grown(graph, {copy, group}, *group, legal)) return joined;
  for (size_t i = 0; i < group->inputs.size(); ++i)
    if (group->inputs[i] == copy->outputs[operand->result]) graph.set_input(group, i, operand);
  graph.erase(copy);
  return nullptr;
}

/// The movement that alone reads the result.
Node* absorb_result(Graph& graph, Node* group, const Legality& legal) {
  const Use* use = group->outputs.size() == 1 ? group->output()->only_use() : nullptr;
  if (!use || use->index != 0 || !moves_elements(*use->node) || use->node->outputs.size() != 1) return nullptr;
  return grown(graph, {group, use->node}, *group, legal);
}

/// A rotary embedding's results go to attention, which takes what is behind them.
int64_t absorb_around(Graph& graph, Node* group, const Legality& legal) {
  int64_t count = 0;
  for (bool more = true; more;) {
    Node* next = is_attention(*group) ? absorb_result(graph, group, legal) : nullptr;
    for (size_t i = 0; !next && i < group->inputs.size(); ++i) next = absorb_operand(graph, group, i, legal);
    more = next != nullptr;
    if (!next) continue;
    group = next;
    ++count;
  }
  return count;
}

constexpr const char* kPass = "absorb-movements";

/// Works on groups that are legal; they stay legal.
bool run(Graph& fused, const ShapeContext& context, std::vector<ShapeVerdict>& verdicts) {
  if (context.switched_off(kPass)) return false;
  const auto legal = [&](const Node& node) { return context.refuses(kPass, node); };
  std::vector<Node*> takers;  // the nodes around them go while they grow
  for (Node* node : fused.nodes())
    if (takes_movements(*node)) takers.push_back(node);
  bool changed = false;
  for (Node* node : takers) {
    if (legal(*node)) continue;
    ShapeVerdict verdict{
        .pass = kPass, .subject = is_attention(*node) ? kAttention : kRotaryEmbedding, .nodes = {name_of_group(*node)}};
    for (const Source& source : node->sources) verdict.sources.push_back(source.name);
    const int64_t count = absorb_around(fused, node, legal);
    if (count == 0) continue;
    verdict.numbers = {{"movements", count}};
    verdicts.push_back(std::move(verdict));
    changed = true;
  }
  return changed;
}

}  // namespace

ShapingPass absorb_movements() {
  return {kPass, "Movements of elements around attention and rotary embeddings become part of their loads and stores.",
          run};
}

}  // namespace opfuse
