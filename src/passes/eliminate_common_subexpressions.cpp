// f(x), f(x)  =  f(x) once, for nodes with equal operators, attributes and operands.
// Small constants are equal when their bits are. Opaque nodes may have effects or draw random numbers and
// stay; so do fused nodes. The node that stays takes the other's sources.
#include <fmt/format.h>

#include <map>

#include "passes/passes.hpp"

namespace opfuse {

namespace {

constexpr size_t kSmallConstant = 1024;  // bytes; shapes and scalars, not weights

std::string operand_key(const Value* v) {
  if (v == nullptr) return "_";
  if (v->is_constant() && v->constant->bytes() <= kSmallConstant) return content_hash(*v->constant).hex();
  return fmt::format("%{}", v->id);
}

std::string key_of(const Node& node) {
  std::string key = fmt::format("{}:{}", node.op->name, node.outputs.size());
  for (const auto& [name, value] : node.attr_map()) key += fmt::format("|{}={}", name, text_of(value));
  for (const Value* v : node.inputs) key += "," + operand_key(v);
  return key;
}

bool can_merge(const Graph& graph, const Node& kept, const Node& node) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!(kept.outputs[i]->type == node.outputs[i]->type) || !graph.can_replace(node.outputs[i], kept.outputs[i]))
      return false;
  }
  return true;
}

bool run(Graph& graph, PassContext&) {
  bool changed = false;
  std::map<std::string, Node*> first;
  const std::vector<Node*> nodes = graph.nodes();
  for (Node* node : nodes) {
    if (node->op->has_body || node->op->kind == OpKind::opaque) continue;
    auto [at, fresh] = first.emplace(key_of(*node), node);
    if (fresh || !can_merge(graph, *at->second, *node)) continue;
    Node* kept = at->second;
    for (size_t i = 0; i < node->outputs.size(); ++i) graph.replace_uses(node->outputs[i], kept->outputs[i]);
    kept->sources.insert(kept->sources.end(), node->sources.begin(), node->sources.end());
    graph.erase(node);
    changed = true;
  }
  return changed;
}

}  // namespace

Pass eliminate_common_subexpressions() {
  return {"eliminate-common-subexpressions", "Keeps one of several nodes that compute the same.", run, {}};
}

}  // namespace opfuse
