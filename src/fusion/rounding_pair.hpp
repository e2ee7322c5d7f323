// Q/DQ pairs that only round numbers: nobody reads their codes, or could.
//
//     x -- quantize_linear -- codes -- dequantize_linear -- y          both in one launch, no sum of codes behind y
#pragma once

#include <functional>

#include "ir/graph.hpp"

namespace opfuse {

/// The node is half of such a pair, and `together` holds both halves.
bool rounds_within(const Node& node, const std::function<bool(const Node*)>& together);

}  // namespace opfuse
