// Groups of accelerators in the fused graph:
//
//     x -- [copy in] -- piece -- piece -- [copy out] -- y
//
// A value that the host makes is copied to a device once, whoever reads it there; one that a device makes is copied
// back once, if anybody on the host reads it, and then the host's copy has its name.
#include <algorithm>

#include "driver/placement.hpp"
#include "fusion/user/capability_rules.hpp"
#include "ir/outline.hpp"
#include "ir/placed.hpp"
#include "ir/value_name.hpp"
#include "match/pattern.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

bool is_on(const Node* node, const std::string& device) {
  return node->op == placed_op() && placed_device(*node) == device;
}

/// A placed node with an identity in it, behind `value`.
Node* add_copy(Graph& graph, Value* value, Node* before, const std::string& label, const std::string& pattern) {
  auto body = std::make_unique<Graph>();
  Value* const inside = body->add_input(value_name(*value), value->type);
  body->set_outputs({body->add_node(op_named("identity"), AttrMap{}, {inside})->output()});
  Node* const copy = graph.add_node(placed_op(), std::shared_ptr<const void>(), {value}, 1, {}, before, {value->type});
  copy->body = std::move(body);
  copy->label = label;
  copy->pattern = pattern;
  return copy;
}

void copy_in(Graph& graph, Value* value, const std::string& device) {
  std::vector<Use> readers;
  for (const Use& use : value->uses)
    if (is_on(use.node, device) && placed_kind(*use.node) != PlacedKind::copy_in) readers.push_back(use);
  if (readers.empty()) return;
  Node* first = readers.front().node;
  for (const Use& use : readers)
    if (graph.position(use.node) < graph.position(first)) first = use.node;
  Node* const copy = add_copy(graph, value, first, "copy_" + value_name(*value) + "_to_" + device, device + "<copy");
  for (const Use& use : readers) graph.set_input(use.node, static_cast<size_t>(use.index), copy->output());
}

void copy_out(Graph& graph, Value* value, const std::string& device, Node* behind) {
  bool read = graph.is_output(value);
  std::vector<Use> there;
  for (const Use& use : value->uses) (is_on(use.node, device) ? (void)there.push_back(use) : (void)(read = true));
  if (!read) return;
  const size_t next = graph.position(behind) + 1;
  Node* const before = next < graph.nodes().size() ? graph.nodes()[next] : nullptr;
  const std::string name = value_name(*value);
  Node* const copy = add_copy(graph, value, before, "copy_" + name + "_from_" + device, device + ">copy");
  take_over(graph, value, copy->output());
  graph.set_input(copy, 0, value);
  for (const Use& use : there) graph.set_input(use.node, static_cast<size_t>(use.index), value);
  value->name = name + "@" + device;
}

}  // namespace

/// A group or node as a piece of a GPU, whose program has its constants.
static Node* gpu_piece(Graph& graph, Node* node, const std::string& device) {
  if (node->op != fused_op()) {
    const std::string name = node->name(), op(operator_name(*node));
    node = outline(graph, {node}, {fused_op(), op + "__" + name, op});
  }
  auto body = std::make_unique<Graph>();
  std::vector<Value*> inside, operands;
  for (size_t i = 0; i < node->inputs.size(); ++i) {
    Value* const v = node->inputs[i];
    if (v->is_constant()) {
      inside.push_back(body->add_constant(*v->constant, v->name));
      continue;
    }
    inside.push_back(body->add_input(value_name(*v), v->type));
    operands.push_back(v);
  }
  body->set_outputs(inline_body(*body, *node->body, inside, nullptr));
  std::vector<TensorType> types;
  for (const Value* v : node->outputs) types.push_back(v->type);
  Node* const piece = graph.add_node(placed_op(), std::shared_ptr<const void>(), operands, node->outputs.size(),
                                     node->sources, node, types);
  piece->body = std::move(body);
  piece->label = node->label;
  std::string pattern = node->pattern;
  std::replace(pattern.begin(), pattern.end(), ':', '.');
  piece->pattern = device + ":" + pattern;
  for (size_t i = 0; i < node->outputs.size(); ++i) take_over(graph, node->outputs[i], piece->outputs[i]);
  graph.erase(node);
  return piece;
}

void insert_pieces(Graph& fused, const Placed& placed) {
  std::vector<Node*> pieces;
  for (Node* node : std::vector<Node*>(fused.nodes())) {
    const auto at = placed.on_gpu.find(node->op == fused_op() ? node->label : node->name());
    if (at != placed.on_gpu.end()) pieces.push_back(gpu_piece(fused, node, at->second));
  }
  for (const TargetInfo& target : placed.accelerators) {
    const auto rules = capability_rules(target);
    for (Node* node : fused.nodes())
      if (node->op == fused_op() && rules->is_composite(node->pattern))
        node->op = placed_op(), node->pattern = target.name + ":" + node->pattern, pieces.push_back(node);
  }
  for (Node* piece : pieces) {
    const std::string device = placed_device(*piece);
    for (Value* v : std::vector<Value*>(piece->outputs)) copy_out(fused, v, device, piece);
  }
  for (Node* piece : pieces) {
    const std::string device = placed_device(*piece);
    const std::vector<Value*> inputs = piece->inputs;
    for (Value* v : inputs)
      if (v && !v->is_constant() &&
          !(v->producer && is_on(v->producer, device) && placed_kind(*v->producer) != PlacedKind::copy_out))
        copy_in(fused, v, device);
  }
  fused.sort_topologically();
}

}  // namespace opfuse
