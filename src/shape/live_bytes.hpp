// How much memory the intermediates of a graph need, by position.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.hpp"

namespace opfuse {

/// -1 when a dimension is open.
int64_t constant_bytes(const Value& value);

/// Bytes of intermediates that are alive while each node runs, in order; empty when a size is not constant.
std::vector<int64_t> live_bytes(const Graph& graph);

}  // namespace opfuse
