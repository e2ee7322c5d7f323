// What of a graph is kept: the state that minimising changes step by step.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.hpp"

namespace opfuse {

/// Values and nodes are named by their ids in the graph that the selection is of.
struct Selection {
  std::vector<int> outputs;                            ///< value ids
  std::set<int> cuts;                                  ///< values that become graph inputs
  std::map<int, size_t> bypassed;                      ///< value id -> the operand of its producer that stands for it
  std::set<int> plain;                                 ///< constants that become 1/2 everywhere
  std::set<std::pair<int, std::string>> default_attr;  ///< attributes (node id, name) left out
  std::map<int64_t, int64_t> extents;  ///< inputs and constants have the second where the original has the first
  SymbolValues symbols;                ///< open dimensions that become numbers

  bool operator==(const Selection&) const = default;
};

/// Everything.
Selection all_of(const Graph& graph);

/// The graph that is left: nodes that the outputs need, types inferred anew. Throws Error where that is not a model.
Graph selected(const Graph& graph, const Selection& selection);

/// Ids of the nodes that are left, in their order.
std::vector<int> nodes_left(const Graph& graph, const Selection& selection);

}  // namespace opfuse
