// Weights that are stored as integers, as floating-point constants.
#pragma once

#include <set>

#include "ir/graph.hpp"

namespace opfuse {

/// Weights behind DequantizeLinear become floating-point constants: for lowering, not for the graph that is exported.
/// Returns where they lie. Bodies that run again and again too; those of groups stay.
std::set<const void*> fold_dequantized(Graph& graph);

}  // namespace opfuse
