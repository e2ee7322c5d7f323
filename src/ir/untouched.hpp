// Whether a pass left a graph alone: compares it with the clone taken before.
#pragma once

#include "ir/graph.hpp"

namespace opfuse {

/// True when `now` is what `clone` (made by now.clone() before) still is: the same nodes in the same order, on the same
/// operands, with the same attributes and types. Compares ids and pointers that clones share, so it costs a walk and no
/// text; false says only "look closer" (structural_hash): a node replaced by an equal one is touched, too.
bool untouched(const Graph& now, const Graph& clone);

}  // namespace opfuse
