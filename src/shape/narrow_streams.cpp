// An image that groups with products in bf16 (f16, tf32) pass on lies in memory in that type alone, residual streams
// too:
//
//     [conv, add r, relu, cast] -- y f32 ---------------- [conv, add y, relu]
//                               -- y' bf16 -- [conv] ..                          y f32 is written and read for the add
//
// becomes   [conv, add r, relu, cast] -- y' bf16 -- [cast f32, conv, add, relu]
//
// Sums, bias, activation and the addition stay f32. Features of transformers keep their f32 streams: norms read them.
#include <algorithm>
#include <set>

#include "fusion/precision.hpp"
#include "ir/body.hpp"
#include "ops/cast.hpp"
#include "ops/is_a.hpp"
#include "ops/registry.hpp"
#include "shape/join.hpp"
#include "tensor/tf32.hpp"

namespace opfuse {
namespace {

constexpr const char* kPass = "narrow-streams";
constexpr size_t kImageRank = 4;

bool is_narrow(DType type) { return type == DType::bf16 || type == DType::f16 || type == kTf32; }

bool multiplies(const Node& group) {
  return group.body && std::any_of(group.body->nodes().begin(), group.body->nodes().end(),
                                   [](const Node* node) { return is_product(*node); });
}

/// The type of the weights of a group that multiplies narrow factors; unknown: it does not.
DType factors_of(const Node* node) {
  if (!node || node->op != fused_op() || !multiplies(*node)) return DType::unknown;
  for (const Value* operand : node->inputs)
    if (operand->is_constant() && is_narrow(operand->type.dtype) && operand->type.shape.rank() >= kImageRank)
      return operand->type.dtype;
  return DType::unknown;
}

/// Only groups of the producer's type read it.
bool is_stream(const Value& value) {
  const DType type = factors_of(value.producer);
  return type != DType::unknown && value.type.dtype == DType::f32 && value.type.shape.rank() >= kImageRank &&
         value.as_output == 0 && !value.uses.empty() &&
         std::all_of(value.uses.begin(), value.uses.end(),
                     [&](const Use& use) { return factors_of(use.node) == type; });
}

/// The narrow form that the producer stores already; null: it stores none.
Value* twin_of(const Value* value) {
  const Node& group = *value->producer;
  const auto& inner = group.body->outputs();
  const auto own = std::find(group.outputs.begin(), group.outputs.end(), value) - group.outputs.begin();
  for (size_t i = 0; i < inner.size(); ++i) {
    const Node* cast = inner[i]->producer;
    if (cast && is_a<Cast>(*cast) && is_narrow(inner[i]->type.dtype) &&
        cast->input(0) == inner[static_cast<size_t>(own)])
      return group.outputs[i];
  }
  return nullptr;
}

Outline outline_of(const Node& group) { return {fused_op(), group.label, group.pattern}; }

Node* add_cast(Graph& graph, Value* value, DType to, Node* before) {
  return graph.add_node(ops().find("cast"), AttrMap{{"to", to}}, {value}, 1, {}, before);
}

/// The group without results that nobody reads.
void drop_unread(Graph& graph, Node* group) {
  const Outline how = outline_of(*group);
  const std::vector<Node*> before = graph.nodes();
  const std::vector<Value*> results = inline_body(graph, *group->body, group->inputs, group);
  std::vector<Node*> nodes;
  for (Node* node : graph.nodes())
    if (std::find(before.begin(), before.end(), node) == before.end()) nodes.push_back(node);
  for (size_t i = 0; i < results.size(); ++i)
    if (graph.read_count(group->outputs[i]) > 0) take_over(graph, group->outputs[i], results[i]);
  graph.erase(group);
  outline(graph, nodes, how);
}

/// A trial that is a kernel of the same kind.
Legality same_kind(const ShapeContext& context, const Node& group) {
  const std::string kind = context.skeleton ? context.skeleton(group) : "";
  return [&context, kind](const Node& trial) -> std::optional<Decline> {
    if (context.legal)
      if (auto why = context.legal(trial)) return why;
    if (!context.skeleton || context.skeleton(trial) == kind) return std::nullopt;
    return Decline{"no_gain", "another kernel", {}};
  };
}

/// All readers read the narrow form, or none: then what was changed is put back.
bool narrow(Graph& graph, Value* value, const ShapeContext& context) {
  const DType type = factors_of(value->producer);
  Value* twin = twin_of(value);
  Node* cast = nullptr;
  if (!twin) {
    Node* producer = value->producer;
    const auto& nodes = graph.nodes();
    const size_t at = graph.position(producer) + 1;
    cast = add_cast(graph, value, type, at < nodes.size() ? nodes[at] : nullptr);
    twin = cast->output();
  }
  const auto next = [&]() -> const Use* {
    for (const Use& use : value->uses)
      if (use.node != cast) return &use;
    return nullptr;
  };
  while (const Use* found = next()) {
    const Use use = *found;
    Node* x = add_cast(graph, twin, DType::f32, use.node);
    graph.set_input(use.node, use.index, x->output());
    const auto joined = outline_unless(graph, {x, use.node}, outline_of(*use.node), same_kind(context, *use.node));
    if (std::holds_alternative<Node*>(joined)) continue;
    graph.set_input(use.node, use.index, value);
    graph.erase(x);
    if (cast && graph.read_count(twin) == 0) graph.erase(cast);
    return false;
  }
  Node* producer = value->producer;
  if (!cast) return drop_unread(graph, producer), true;
  return std::holds_alternative<Node*>(
      outline_unless(graph, {producer, cast}, outline_of(*producer), same_kind(context, *producer)));
}

Value* next_stream(const Graph& graph, const std::set<const Value*>& refused) {
  for (const Node* node : graph.nodes())
    for (Value* value : node->outputs)
      if (is_stream(*value) && !refused.contains(value)) return value;
  return nullptr;
}

bool run(Graph& graph, const ShapeContext& context, std::vector<ShapeVerdict>& verdicts) {
  if (context.precisions.empty() || context.switched_off(kPass)) return false;
  std::set<const Value*> refused;
  int64_t streams = 0;
  while (Value* value = next_stream(graph, refused)) {
    if (narrow(graph, value, context))
      ++streams;
    else
      refused.insert(value);
  }
  if (streams == 0) return false;
  verdicts.push_back({.pass = kPass, .numbers = {{"streams", streams}}});
  return true;
}

}  // namespace

ShapingPass narrow_streams() {
  return {kPass, "Images between products in bf16, f16 or tf32 lie in that type alone, residual streams too.", run};
}

}  // namespace opfuse
