// Floating-point operations of nodes, bodies included. With every open extent 1: shares and orders are what they are
// for.
#pragma once

#include "ir/graph.hpp"

namespace opfuse {

double flops_of(const Node& node);
double flops_of(const Graph& graph);

}  // namespace opfuse
