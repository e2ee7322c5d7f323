// The operator of pieces. Shaping passes and lowering leave them alone: they know groups and composites.
#include "ir/placed.hpp"

namespace opfuse {

const OpInfo* placed_op() {
  static const OpInfo info = [] {
    OpInfo made;
    made.name = "placed";
    made.kind = OpKind::composite;
    made.inputs = {{"inputs", true, true}};
    made.outputs = {{"outputs", true, true}};
    made.doc = "A piece that runs on a device beside the host; the body holds its nodes.";
    made.has_body = true;
    return made;
  }();
  return &info;
}

PlacedKind placed_kind(const Node& placed) {
  if (placed.pattern.ends_with("<copy")) return PlacedKind::copy_in;
  return placed.pattern.ends_with(">copy") ? PlacedKind::copy_out : PlacedKind::run;
}

std::string placed_device(const Node& placed) {
  const std::string& pattern = placed.pattern;  // names of devices may have colons, those of patterns have none
  return pattern.substr(0, placed_kind(placed) == PlacedKind::run ? pattern.rfind(':') : pattern.find_last_of("<>"));
}

}  // namespace opfuse
