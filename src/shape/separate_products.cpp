//     x -- [matmul q, add | matmul k, add | matmul v, add]      becomes      x -- [matmul q, add], x -- [matmul k, add]
//     ..
//
// An attention's projections are one group (FusedMHAInProjection) of a composite whose body has them all. Every node
// belongs to the one product that it depends on.
#include "shape/separate_products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "fusion/names.hpp"
#include "fusion/precision.hpp"
#include "ir/body.hpp"
#include "ir/outline.hpp"

namespace opfuse {
namespace {

using Outside = std::function<const Value*(const Value*)>;

/// Which product every value depends on.
struct Owners {
  bool (*takes)(const Value*, const Value*) = nullptr;
  std::map<const Value*, int> of{};  ///< looked up only
  int products = 0;
  bool apart = true;

  int owner_of(const Value* value) const {
    const auto at = of.find(value);
    return at == of.end() ? -1 : at->second;
  }
  /// The product that a node's operands depend on; -1: on none.
  int owner_of(const Node& node) {
    int owner = -1;
    for (const Value* input : node.inputs) {
      const int other = input ? owner_of(input) : -1;
      if (other >= 0 && owner >= 0 && other != owner) apart = false;
      if (other >= 0) owner = other;
    }
    return owner;
  }

  void walk(const Node& node, const Outside& outside) {
    if (is_product(node)) {
      apart = apart && owner_of(node) < 0 && takes(outside(node.input(0)), outside(node.input(1)));
      of[node.output()] = products++;
      return;
    }
    if (node.body && stands_for_body(node)) return walk_body(node, outside);
    const int owner = owner_of(node);
    apart = apart && owner >= 0;
    for (const Value* output : node.outputs) of[output] = owner;
  }

  void walk_body(const Node& node, const Outside& outside) {
    const auto pass = [&](const Value* from, const Value* to) {
      if (const int owner = owner_of(from); owner >= 0) of[to] = owner;
    };
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i]) pass(node.inputs[i], node.body->inputs()[i]);
    for (const Node* inner : node.body->nodes())
      walk(*inner, [&](const Value* value) -> const Value* {
        const Value* operand = outside_of(node, value);
        return operand ? outside(operand) : nullptr;
      });
    for (size_t i = 0; i < node.outputs.size(); ++i) pass(node.body->outputs()[i], node.outputs[i]);
  }
};

bool holds_product(const Node& node) {
  if (is_product(node)) return true;
  if (!node.body || !stands_for_body(node)) return false;
  const auto& nodes = node.body->nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* inner) { return holds_product(*inner); });
}

/// The node's body in its place, and the bodies in it that hold products; what remains is added to `made`.
void expand(Graph& graph, Node* node, std::vector<Node*>& made) {
  const size_t at = graph.position(node);
  const std::vector<Value*> results = inline_body(graph, *node->body, node->inputs, node);
  std::vector<Node*> added;
  for (size_t i = at; graph.nodes()[i] != node; ++i) added.push_back(graph.nodes()[i]);
  for (size_t i = 0; i < results.size(); ++i) take_over(graph, node->outputs[i], results[i]);
  graph.erase(node);
  for (Node* one : added) {
    if (one->body && holds_product(*one))
      expand(graph, one, made);
    else
      made.push_back(one);
  }
}

}  // namespace

bool separate_products(Graph& graph, Node* group, bool (*takes)(const Value* left, const Value* right)) {
  const Outside itself = [](const Value* value) { return value; };
  Owners planned{takes};
  if (group->op != fused_op()) return false;
  planned.walk(*group, itself);
  if (!planned.apart || planned.products < 2) return false;
  const std::string module = group->label.substr(0, group->label.find("__")), pattern = group->pattern;
  std::vector<Node*> made;
  expand(graph, group, made);
  Owners owners{[](const Value*, const Value*) { return true; }};
  for (const Node* node : made) owners.walk(*node, itself);
  std::vector<std::vector<Node*>> groups(static_cast<size_t>(owners.products));
  for (Node* node : made) groups[static_cast<size_t>(owners.owner_of(node->output()))].push_back(node);
  for (const std::vector<Node*>& nodes : groups) {
    const auto at = std::find_if(nodes.begin(), nodes.end(), [](const Node* node) { return is_product(*node); });
    const std::string label = fmt::format("{}__{}", module, identifier((*at)->name()));
    if (nodes.size() > 1) outline(graph, nodes, {fused_op(), label, pattern});
  }
  return true;
}

}  // namespace opfuse
