// Loops over parts of a graph as what they stand for: a copy of the body for each part.
//
//     x, w -- for_parts -- y           x --+-- x[0:8]  -- conv w[0:8]  --+-- concat -- y
//                                          +-- x[8:16] -- conv w[8:16] --+
#pragma once

#include "ir/graph.hpp"

namespace opfuse {

/// A program can run it as a loop of launches: all that it cuts is in memory before and all that it makes lies in
/// memory part by part, as both go along their first axes, and no loop is in it. Others, such as slices of channels,
/// whose weights lie packed each for itself, become copies.
bool lies_part_by_part(const Node& for_parts);

/// Replaces loops over parts by copies, those in bodies too; `keep`: but those of this graph that lie part by part.
/// Values and groups of a copy are named by name_in_part, also inside bodies.
void unroll_parts(Graph& graph, bool keep = false);

/// Puts the body of such a loop before it, for whichever part it runs for; `operands` stand for the body's inputs.
/// Returns what its outputs became. Values are named "y[image]".
std::vector<Value*> inline_part(Graph& graph, Node& for_parts, const std::vector<Value*>& operands);

}  // namespace opfuse
