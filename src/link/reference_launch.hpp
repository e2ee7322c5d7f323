// --allow-reference: operators without a kernel run in the interpreter, as launches of the host.
#pragma once

#include <memory>

#include "ir/graph.hpp"
#include "program/program.hpp"
#include "runtime/artifact.hpp"

namespace opfuse {

/// The host function of a reference launch: operands are read through their layouts, the node is interpreted with its
/// declared element types, results are stored. `graph` holds the node (possibly inside a fused body) and is kept alive.
HostFunction reference_launch(const Program& program, const Launch& launch, const std::shared_ptr<const Graph>& graph);

}  // namespace opfuse
