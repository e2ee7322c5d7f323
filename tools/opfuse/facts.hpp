// Counting on graphs: operators, FLOP, bytes. What inspect, fuse and demo report.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace opfuse::cli {

/// FLOP of one node (bodies included), multiply and add one each. Symbols without a value count 1.
double node_flops(const Node& node, const SymbolValues& symbols);
double graph_flops(const Graph& graph, const SymbolValues& symbols);
/// Bytes of a value; symbols without a value count 1, unknown ranks 0.
double value_bytes(const Value& value, const SymbolValues& symbols);
/// Bytes of activations that the graph's nodes read and write; a fused node's interior does not count.
double activation_bytes(const Graph& graph, const SymbolValues& symbols);
/// Bytes of constants, bodies included, each once.
double constant_bytes(const Graph& graph);
/// How often each operator occurs, by source name ("Conv"), most frequent first.
std::vector<std::pair<std::string, int>> operator_counts(const Graph& graph);

}  // namespace opfuse::cli
