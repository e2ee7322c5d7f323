// How much memory the intermediates of a graph need, by node.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.hpp"

namespace opfuse {

/// -1 when a dimension is open.
int64_t constant_bytes(const Value& value);

struct LiveBytes {
  Graph* graph = nullptr;  ///< that the node is in
  Node* node = nullptr;    ///< null: a copy for one slice
  int64_t bytes = 0;
};

/// Bytes of intermediates that are alive while each node runs, in order; those of a loop's body stand in its place,
/// once or, where a program will have copies of them, for each slice. Empty when a size is not constant.
/// `channel_block`: channels that a layout keeps together; codes of images fill their blocks.
std::vector<LiveBytes> live_bytes(Graph& graph, int64_t channel_block = 1);

}  // namespace opfuse
