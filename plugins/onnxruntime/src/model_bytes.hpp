// Nodes of a graph of ONNX Runtime as an ONNX model of their own.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ort_abi.hpp"

namespace opfuse::ort {

/// A model and what its names stand for.
struct ModelBytes {
  std::string bytes;                         ///< an encoded ModelProto, weights included
  std::vector<std::string> inputs, outputs;  ///< names of values, as in the graph
  std::map<std::string, const Node*> nodes;  ///< by name in the model: the graph's own, made unique
};

/// The nodes in their order in the graph. Inputs are what they read of others, outputs what others read of them and
/// what the graph returns; constant initializers become the model's. Throws Failure.
ModelBytes model_of(const Graph* graph, const std::vector<const Node*>& nodes);

/// What stops a node from being written to a model: a subgraph, values that are no tensors, strings. Empty: nothing.
std::string cannot_write(const Node* node);

}  // namespace opfuse::ort
