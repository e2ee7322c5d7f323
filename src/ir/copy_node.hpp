// A node once more, on other operands.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace opfuse {

/// Adds a copy of `node` on `operands` (null: absent) before another node; types of results are inferred from them, in
/// bodies too. `renamed` names the values of bodies; empty: as in the node.
Node* copy_node(Graph& graph, const Node& node, const std::vector<Value*>& operands, Node* before,
                const std::function<std::string(const Value&)>& renamed = {});

}  // namespace opfuse
