// Inputs whose values, not whose sizes, decide shapes: axes, sizes, repeats, pads, k.
#pragma once

#include <string>
#include <vector>

#include "onnx/flatten_functions.hpp"

namespace opfuse::onnx {

/// Names of the graph's inputs of one dimension or none that reach, directly or through other nodes, an operand on
/// which a result's shape depends. In the order of the graph's inputs.
std::vector<std::string> shape_inputs(const std::vector<FlatNode>& nodes, const GraphProto& graph);

/// Whether a result's shape depends on the value of this operand.
bool decides_shape(const NodeProto& node, size_t operand);

}  // namespace opfuse::onnx
