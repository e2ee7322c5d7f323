// Gated MLPs in a fused graph: act(x A) * (x B) as two groups.
//
//     x --+-- A: Linear, activation -- g        B alone reads g
//         '-- B: Linear, * g ---------- y
#pragma once

#include "ir/graph.hpp"

namespace opfuse {

/// The group that reads the result of group `a` behind a Linear of the same value that `a` is a Linear of; null when
/// there is none, or `a` is no Linear.
Node* gated_reader(const Node& a);

}  // namespace opfuse
