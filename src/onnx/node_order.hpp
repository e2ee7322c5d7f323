// Checks who defines and who reads each tensor, and orders the nodes.
#pragma once

#include <vector>

#include "onnx/flatten_functions.hpp"

namespace opfuse::onnx {

/// Indices of `nodes` so that every tensor is defined before it is read: file order where that is already so.
/// E::duplicate_name when a tensor is defined twice, E::missing_tensor when nothing defines one,
/// E::cyclic_graph when nodes wait for each other.
std::vector<size_t> node_order(const std::vector<FlatNode>& nodes, const GraphProto& graph);

/// The node's name, or one made up from its first output.
std::string display_name(const NodeProto& node);

}  // namespace opfuse::onnx
