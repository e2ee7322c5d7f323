// The graph whose values are those that the launches of a program read and store.
#pragma once

#include "ir/graph.hpp"

namespace opfuse {

/// A fused graph with a copy of groups for each part that they run for, and with recurrent layers as products and
/// steps.
Graph graph_of_launches(const Graph& fused);

}  // namespace opfuse
