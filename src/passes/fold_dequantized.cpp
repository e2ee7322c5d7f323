// dequantize(constant) = constant, for kernels that compute in floating point. Done when a program is made, never
// before: the graph that is fused, explained and exported keeps its quantised weights.
#include "passes/fold_dequantized.hpp"

#include "interp/interpreter.hpp"
#include "ir/body.hpp"
#include "match/qdq.hpp"

namespace opfuse {

static Tensor computed(const Node& node) {
  std::vector<Tensor> made;
  made.reserve(node.inputs.size());
  std::vector<const Tensor*> operands;
  for (const Value* v : node.inputs) {
    if (v && !v->is_constant()) made.push_back(computed(*v->producer));
    operands.push_back(!v ? nullptr : v->is_constant() ? &*v->constant : &made.back());
  }
  return interpret_node(node, operands, {.precision = Precision::typed}).front();
}

std::set<const void*> fold_dequantized(Graph& graph) {
  std::set<const void*> folded;
  const std::vector<Node*> nodes = graph.nodes();
  for (Node* node : nodes) {
    if (node->body && !stands_for_body(*node)) folded.merge(fold_dequantized(*node->body));
    if (!node->is("dequantize_linear") || !is_constant_or_dequantized(node->output()) ||
        graph.is_output(node->output()))
      continue;
    Value* weight = graph.add_constant(computed(*node), std::exchange(node->output()->name, {}));
    graph.replace_uses(node->output(), weight);
    folded.insert(weight->constant->data());
  }
  if (!folded.empty()) graph.remove_dead_nodes();
  return folded;
}

}  // namespace opfuse
