// The fusion vocabulary applied to nodes of a graph, composites included.
#pragma once

#include <string_view>

#include "ir/graph.hpp"

namespace opfuse {

/// Kind of a node; of a recomposed one the highest of its body: elementwise, else reduction, else what it holds. A loop
/// is OpKind::composite.
OpKind kind_of(const Node& node);
/// Contraction, window, reduction: at most one of them per group.
bool is_anchor(OpKind kind);
std::string_view name_of(OpKind kind);
/// A transpose of four dimensions, [n,c,h,w] to [n,h,w,c] or back: only the place of the channels changes.
bool turns_channels(const Node& node);
/// A transpose that leaves the last axis where it is, of whole vectors: rows move, not elements.
bool moves_rows(const Node& node);
/// The first of transpose, reduction that keeps its operand's shape, transpose back, none of them read by others.
bool turns_around_norm(const Node& node);

}  // namespace opfuse
