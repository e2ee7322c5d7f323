// What a plug-in is given to read: a piece as text (docs/plugins.md).
#pragma once

#include <string>

#include "ir/graph.hpp"

namespace opfuse {

/// A fused or placed node, its operands and results in their order.
std::string piece_text(const Node& piece);

}  // namespace opfuse
