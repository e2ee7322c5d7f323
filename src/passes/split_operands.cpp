// A Sum, Mean, Max or Min of very many operands becomes a chain of such nodes, in the same order:
//     sum(x1 ... x9999) = sum(sum(sum(x1 ... x64), x65 ... x127), ...)
// One kernel of thousands of operands takes a generator minutes, and no group around it could be priced.
#include <fmt/format.h>

#include <algorithm>

#include "ir/outline.hpp"
#include "ops/registry.hpp"
#include "passes/passes.hpp"
#include "passes/recompose.hpp"

namespace opfuse {
namespace {

constexpr size_t kMost = 64;  ///< operands of a node

/// What all links of the chain are; the scale of a mean comes behind it.
const OpInfo* link_of(const Node& node) {
  if (node.is("mean")) return op_named("sum");
  return node.is("sum") || node.is("max") || node.is("min") ? node.op : nullptr;
}

Value* chain(Graph& graph, Node* node, const OpInfo* link) {
  const std::vector<Value*> operands = node->inputs;
  Value* value = operands[0];
  for (size_t at = 1; at < operands.size();) {
    const size_t end = std::min(operands.size(), at + kMost - 1);
    std::vector<Value*> taken{value};
    for (; at < end; ++at) taken.push_back(operands[at]);
    value = graph.add_node(link, AttrMap{}, std::move(taken), 1, node->sources, node)->output();
  }
  return value;
}

bool run(Graph& graph, PassContext& context) {
  bool changed = false;
  const std::vector<Node*> order = graph.nodes();
  for (Node* node : order) {
    if (node->inputs.size() <= kMost) continue;
    const OpInfo* link = link_of(*node);
    if (!link) continue;
    const size_t operands = node->inputs.size();
    if (context.report)
      context.report->applied("split-operands", "SplitOperands", node->name(),
                              fmt::format("{} operands, {} at a time", operands, kMost));
    Value* value = chain(graph, node, link);
    if (node->is("mean")) {
      Value* share = graph.add_constant(Tensor::scalar(value->type.dtype, 1.0 / static_cast<double>(operands)));
      value = graph.add_node(op_named("mul"), AttrMap{}, {value, share}, 1, node->sources, node)->output();
    }
    take_over(graph, node->output(), value);
    graph.erase(node);
    changed = true;
  }
  return changed;
}

}  // namespace

Pass split_operands() {
  return {"split-operands", "A Sum, Mean, Max or Min of very many operands is a chain of them.", run, {}};
}

}  // namespace opfuse
