// What a caller of a compiled model must give, as a graph.
#pragma once

#include "ir/graph.hpp"
#include "runtime/artifact.hpp"

namespace opfuse {

/// The inputs; a gather stands for what the model does with indices, so that random ones stay in their table.
Graph interface_of(const Artifact& artifact);

}  // namespace opfuse
