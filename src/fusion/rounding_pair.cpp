#include "fusion/rounding_pair.hpp"

#include <algorithm>

#include "fusion/node_kind.hpp"
#include "ops/is_a.hpp"
#include "ops/quantize.hpp"

namespace opfuse {
namespace {

bool is_dequantised_constant(const Value* value) {
  return value && value->producer && is_a<DequantizeLinear>(*value->producer) &&
         value->producer->input(0)->is_constant();
}

/// A product with quantised weights, a pool or a mean, behind views too.
bool may_read_codes(const Value& numbers) {
  return std::any_of(numbers.uses.begin(), numbers.uses.end(), [](const Use& use) {
    const Node& node = *use.node;
    if (node.op->moves == Moves::view) return may_read_codes(*node.output());
    const OpKind kind = kind_of(node);
    if (kind != OpKind::contraction) return kind == OpKind::window || kind == OpKind::reduction;
    return std::any_of(node.inputs.begin(), node.inputs.end(), is_dequantised_constant);
  });
}

}  // namespace

bool rounds_within(const Node& node, const std::function<bool(const Node*)>& together) {
  if (is_a<DequantizeLinear>(node)) {
    const Node* made_by = node.input(0)->producer;
    return made_by && is_a<QuantizeLinear>(*made_by) && rounds_within(*made_by, together);
  }
  if (!is_a<QuantizeLinear>(node) || !together(&node)) return false;
  const Value* codes = node.outputs[0];
  return codes->as_output == 0 && !codes->uses.empty() &&
         std::all_of(codes->uses.begin(), codes->uses.end(), [&](const Use& use) {
           const bool opposite = is_a<DequantizeLinear>(*use.node) && use.index == 0 && together(use.node);
           return opposite && !may_read_codes(*use.node->output());
         });
}

}  // namespace opfuse
