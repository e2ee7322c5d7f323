// Roles of operands, found by walking the composite's body from its result: second product, softmax, first product.
#include "match/attention.hpp"

#include <algorithm>
#include <array>

namespace opfuse {

namespace {

Value* operand_of(const Node& node, const Value* inner) {
  const auto& inputs = node.body->inputs();
  const auto at = std::find(inputs.begin(), inputs.end(), inner);
  return at == inputs.end() ? nullptr : node.inputs[static_cast<size_t>(at - inputs.begin())];
}

/// What a rotary embedding turns: of its operands the one that it cuts into halves.
Value* turned(const Node& node) {
  for (const Node* inner : node.body->nodes())
    if (inner->is("slice") || inner->is("split")) return operand_of(node, inner->input(0));
  return nullptr;
}

/// What `node` rearranges, scales or rotates; null when it does something else.
Value* moved(const Node& node) {
  static constexpr std::array kNames{"reshape",   "transpose", "slice",  "split", "squeeze",
                                     "unsqueeze", "identity",  "expand", "tile"};
  if (std::any_of(kNames.begin(), kNames.end(), [&](const char* name) { return node.is(name); })) return node.input(0);
  if (node.body && operator_name(node) == kRotaryEmbedding) return turned(node);
  if (node.is("gather")) return node.input(1)->is_constant() ? node.input(0) : nullptr;
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
  const AttentionParts parts{operand_of(node, body_input(scores->input(0))),
                             operand_of(node, body_input(scores->input(1))),
                             operand_of(node, body_input(context->input(1)))};
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
