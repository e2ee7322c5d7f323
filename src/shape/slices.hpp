// Two groups, slice by slice: what lies between them never exists as a whole.
//
//     x -- A: convolution -- t[C channels] -- B: depthwise -- y        t alone reads B
//
//     x --+-- A[0:C/k]  -- t[0:C/k]  -- B[0:C/k]  --+-- concat -- y      a slice of t is dead before the next begins
//         +-- A[C/k:..] -- t[C/k:..] -- B[C/k:..] --+
//
// A depthwise convolution needs of each channel nothing but that channel, so the slices repeat no work; the results
// are parts of one buffer. The values are those of the whole groups.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace opfuse {

/// Splits pairs of groups of a fused graph where they hold most bytes of intermediates and slices would lower that
/// peak noticeably. `block`: channels that a layout keeps together; slices are multiples of it. Leaves graphs with open
/// dimensions alone. Returns a line per pair that was split.
std::vector<std::string> run_in_slices(Graph& fused, int64_t block);

/// Bytes of intermediates that are alive while each node runs, in order; empty when a size is not constant.
std::vector<int64_t> live_bytes(const Graph& graph);

}  // namespace opfuse
