// Nodes that move elements and compute none.
#pragma once

#include "ir/graph.hpp"

namespace opfuse {

/// Results are elements of operand 0, at places that constants say; of what is gathered, one index.
bool moves_elements(const Node& node);

/// A result with the elements of operand 0 in their order.
bool is_view(const Node& node);

}  // namespace opfuse
