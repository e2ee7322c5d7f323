// Movements of elements around attention become part of its loads and stores, those in front of a rotary embedding part
// of its loads.
//
//     qkv -- slice -- reshape -- transpose -- q --.
//     qkv -- slice -- reshape -- transpose -- k -- attention -- transpose -- reshape -- y
//     qkv -- slice -- reshape -- transpose -- v --'
//
// becomes   qkv -- [slice, reshape, transpose, attention, transpose, reshape] -- y
//
// Heads are then cut from the projection where they are read, and merged where they are stored; no copy of q, k, v or
// of the result exists. A movement that others read too stays for them. The plan, its groups and their counts do not
// change.
#pragma once

#include <string>
#include <vector>

#include "fusion/plan.hpp"

namespace opfuse {

/// Results are elements of operand 0, at places that constants say.
bool moves_elements(const Node& node);
/// A group that holds an attention.
bool is_attention(const Node& node);
/// An attention, or a rotary embedding alone or behind movements.
bool takes_movements(const Node& node);

/// Works on the attention groups and rotary embeddings of a fused graph that `legal` accepts; they stay legal. Returns
/// lines that say how many movements went where, nothing when there were none.
std::vector<std::string> absorb_movements(Graph& fused, const Legality& legal);

}  // namespace opfuse
