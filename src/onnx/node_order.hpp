// Checks who defines and who reads each tensor, and orders the nodes.
#pragma once

#include <set>
#include <vector>

#include "onnx/flatten_functions.hpp"
#include "onnx/problems.hpp"

namespace opfuse::onnx {

struct NodeOrder {
  /// Indices of `nodes` so that every tensor is defined before it is read: file order where that is already so.
  std::vector<size_t> order;
  /// Tensors that nothing defines, that have two definitions, or that are read before a node of their cycle defines
  /// them.
  std::set<Bytes> broken;
  std::set<size_t> unreadable;  ///< nodes whose own graphs (of an If, a Loop) cannot be decoded
};

/// Records E::duplicate_name when a tensor is defined twice, E::missing_tensor once for each that nothing defines,
/// E::cyclic_graph for each cycle, E::malformed_model for graphs within a node.
NodeOrder node_order(const std::vector<FlatNode>& nodes, const GraphProto& graph, Problems& problems);

/// The node's name, or one made up from its first output.
std::string display_name(const NodeProto& node);

}  // namespace opfuse::onnx
