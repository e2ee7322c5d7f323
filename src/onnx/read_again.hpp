// Reading a model again when its sizes are known: what depended on open dimensions (the condition of an If, the steps
// of a Scan) may fold then.
#pragma once

#include <optional>

#include "base/limits.hpp"
#include "ir/graph.hpp"

namespace opfuse {

/// The model file of `graph` read with these sizes, where that leaves fewer nodes that are not understood. Nothing when
/// all are, or when the graph is no longer what its file says.
std::optional<Graph> read_again(const Graph& graph, const SymbolValues& dimensions, const Limits& limits = {});

}  // namespace opfuse
