// By the trait of the operator (Moves in ir/op_info.hpp). Gathering many places is a lookup of its own, not a movement
// that a kernel does on its way.
#include "match/movement.hpp"

namespace opfuse {

bool moves_elements(const Node& node) {
  if (node.op->moves != Moves::view && node.op->moves != Moves::places) return false;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (!node.inputs[i]) continue;
    if (!node.inputs[i]->is_constant()) return false;
    if (node.op->inputs[i].name == "indices" && node.inputs[i]->constant->elements() != 1) return false;
  }
  return true;
}

bool is_view(const Node& node) { return node.op->moves == Moves::view && node.outputs.size() == 1; }

}  // namespace opfuse
