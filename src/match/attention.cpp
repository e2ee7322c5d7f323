// Roles of operands, found by walking the composite's body from its result: second product, softmax, first product.
#include "match/attention.hpp"

#include <algorithm>

#include "ir/outline.hpp"

namespace opfuse {

namespace {

/// What a rotary embedding turns: of its operands the one that it cuts into halves.
Value* turned(const Node& node) {
  for (const Node* inner : node.body->nodes())
    if (inner->is("slice") || inner->is("split")) return outside_of(node, inner->input(0));
  return nullptr;
}

/// What `node` rearranges, scales or rotates; null when it does something else.
Value* moved(const Node& node) {
  if (node.op->moves == Moves::view || node.op->moves == Moves::places) {
    const bool gathers = node.op->inputs.size() > 1 && node.op->inputs[1].name == "indices";
    return !gathers || node.input(1)->is_constant() ? node.input(0) : nullptr;
  }
  if (node.body && operator_name(node) == kRotaryEmbedding) return turned(node);
  if ((node.is("mul") || node.is("div")) && scalar_constant(node.input(1))) return node.input(0);
  return node.is("mul") && scalar_constant(node.input(0)) ? node.input(1) : nullptr;
}

/// The body's input behind `value`, through everything that has one data operand.
const Value* body_input(const Value* value) {
  while (value && value->producer) {
    const Node& node = *value->producer;
    const bool second = is_commutative(operator_name(node)) && node.inputs[0]->is_constant();
    value = node.input(second ? 1 : 0);
  }
  return value;
}

/// The product that `value` comes from, on any path.
const Node* first_product(const Value* value) {
  if (!value || !value->producer) return nullptr;
  if (value->producer->is("matmul")) return value->producer;
  for (const Value* input : value->producer->inputs)
    if (const Node* found = first_product(input)) return found;
  return nullptr;
}

}  // namespace

std::optional<AttentionParts> attention_parts(const Node& node) {
  if (!node.body || operator_name(node) != kAttention) return std::nullopt;
  const Node* context = node.body->outputs().front()->producer;
  if (!context || !context->is("matmul")) return std::nullopt;
  const Node* scores = first_product(context->input(0));
  if (!scores) return std::nullopt;
  const AttentionParts parts{outside_of(node, body_input(scores->input(0))),
                             outside_of(node, body_input(scores->input(1))),
                             outside_of(node, body_input(context->input(1)))};
  if (!parts.q || !parts.k || !parts.v) return std::nullopt;
  return parts;
}

Value* movement_source(Value* value) {
  while (value && value->producer) {
    Value* source = moved(*value->producer);
    if (!source) break;
    value = source;
  }
  return value;
}

}  // namespace opfuse
