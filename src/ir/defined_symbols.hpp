// Dimension symbols that no input gives but a node, once it has run: sizes that data decide. Operators that have them
// name them in their attribute `defines`, so that every copy of a node speaks of the same symbols.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace opfuse {

inline constexpr const char* kDefines = "defines";

/// In the order of the attribute; none for most nodes.
std::vector<std::string> defined_symbols(const Node& node);

/// Those of all nodes, bodies included.
std::set<std::string> defined_symbols(const Graph& graph);

/// Those of the inputs and of all nodes: what shapes may speak of.
std::set<std::string> all_symbols(const Graph& graph);

/// Replaces symbols by values everywhere, of nodes whose sizes turned out to be constant.
void settle_found_sizes(Graph& graph, const SymbolValues& values);

/// A name that is neither in the graph nor one of its symbols: "size of mask".
std::string fresh_symbol(const Graph& graph, const std::string& wished);

}  // namespace opfuse
