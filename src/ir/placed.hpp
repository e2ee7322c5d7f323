// A piece of the graph that runs on a device beside the host: a node whose body it is, and copies of values.
#pragma once

#include "ir/graph.hpp"

namespace opfuse {

/// `label` names the instance as a fused node's does; `pattern` is "DEVICE:COMPOSITE", or "DEVICE<copy" of a copy to
/// its memory and "DEVICE>copy" of one back, whose body is an identity.
const OpInfo* placed_op();

enum class PlacedKind { run, copy_in, copy_out };
PlacedKind placed_kind(const Node& placed);
std::string placed_device(const Node& placed);

}  // namespace opfuse
