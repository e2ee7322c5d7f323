#include "shape/narrow_value.hpp"

#include <algorithm>

#include "ir/body.hpp"
#include "ops/cast.hpp"
#include "ops/is_a.hpp"
#include "ops/registry.hpp"
#include "shape/join.hpp"

namespace opfuse {
namespace {

/// The narrow form that the producer stores already; null: it stores none.
Value* twin_of(const Value* value, DType type) {
  const Node& group = *value->producer;
  const auto& inner = group.body->outputs();
  const auto own = std::find(group.outputs.begin(), group.outputs.end(), value) - group.outputs.begin();
  for (size_t i = 0; i < inner.size(); ++i) {
    const Node* cast = inner[i]->producer;
    if (cast && is_a<Cast>(*cast) && inner[i]->type.dtype == type && cast->input(0) == inner[static_cast<size_t>(own)])
      return group.outputs[i];
  }
  return nullptr;
}

Outline outline_of(const Node& group) { return {fused_op(), group.label, group.pattern}; }

Node* add_cast(Graph& graph, Value* value, DType to, Node* before) {
  return graph.add_node(ops().find("cast"), AttrMap{{"to", to}}, {value}, 1, {}, before);
}

/// The group without results that nobody reads. Inside they keep their names, by which the ledger finds their launch.
void drop_unread(Graph& graph, Node* group) {
  const Outline how = outline_of(*group);
  const size_t at = graph.position(group);
  const std::vector<Value*> results = inline_body(graph, *group->body, group->inputs, group);
  std::vector<Node*> nodes;
  for (size_t i = at; graph.nodes()[i] != group; ++i) nodes.push_back(graph.nodes()[i]);
  std::vector<std::pair<Value*, std::string>> named;
  for (size_t i = 0; i < results.size(); ++i)
    if (graph.read_count(group->outputs[i]) > 0)
      take_over(graph, group->outputs[i], results[i]);
    else
      named.emplace_back(results[i], group->outputs[i]->name);
  graph.erase(group);
  for (const auto& [value, name] : named) value->name = name;
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

}  // namespace

bool narrow_value(Graph& graph, Value* value, DType type, const ShapeContext& context) {
  Value* twin = twin_of(value, type);
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

}  // namespace opfuse
