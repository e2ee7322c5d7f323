// Down to the node, and up again from body to body: an input of a body is an operand of the node that has it.
#include "shape/inner_operand.hpp"

#include <optional>

#include "ir/outline.hpp"

namespace opfuse {
namespace {

/// Nothing: `inner` is not in `node`.
std::optional<Value*> find(const Node& node, const Node& inner, size_t index, bool alone) {
  if (&node == &inner) return inner.input(index);
  if (!node.body) return std::nullopt;
  for (const Node* one : node.body->nodes()) {
    const std::optional<Value*> read = find(*one, inner, index, alone);
    if (!read) continue;
    const bool known = *read && (!alone || (*read)->uses.size() == 1);
    return known ? outside_of(node, *read) : nullptr;
  }
  return std::nullopt;
}

}  // namespace

Value* inner_operand(const Node& group, const Node& inner, size_t index, bool alone) {
  return find(group, inner, index, alone).value_or(nullptr);
}

}  // namespace opfuse
