#include "shape/gates.hpp"

#include <algorithm>

#include "fusion/grouping.hpp"

namespace opfuse {
namespace {

/// The value outside of the node that a value of its body is; the body's own stay.
const Value* outside(const Node& node, const Value* value) {
  const std::vector<Value*>& inputs = node.body->inputs();
  const auto at = std::find(inputs.begin(), inputs.end(), value);
  return at == inputs.end() ? value : node.inputs[static_cast<size_t>(at - inputs.begin())];
}

/// What the one Linear of a group multiplies with constant weights; null for other groups.
const Value* operand_of_linear(const Node& node) {
  if (node.op != fused_op()) return nullptr;
  const Value* operand = nullptr;
  for (const Node* inner : node.body->nodes()) {
    if (!inner->is("matmul") && !inner->is("gemm")) continue;
    if (operand || !outside(node, inner->input(1))->is_constant()) return nullptr;
    operand = outside(node, inner->input(0));
  }
  return operand;
}

}  // namespace

Node* gated_reader(const Node& a) {
  if (a.outputs.size() != 1) return nullptr;
  const Value* x = operand_of_linear(a);
  if (!x) return nullptr;
  for (const Use& use : a.output()->uses)
    if (use.node != &a && operand_of_linear(*use.node) == x) return use.node;
  return nullptr;
}

}  // namespace opfuse
