// Inlining many bodies one after the other: the names that are taken are gathered once, not for each of them.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "ir/graph.hpp"

namespace opfuse {

/// The names of all values of a graph, not of those in bodies.
std::unordered_set<std::string> names_of_values(const Graph& graph);

/// As inline_body in outline.hpp. `taken`: names of the graph's values, and then those of the copies too.
std::vector<Value*> inline_body(Graph& graph, const Graph& body, const std::vector<Value*>& inputs, Node* before,
                                std::unordered_set<std::string>& taken);

}  // namespace opfuse
