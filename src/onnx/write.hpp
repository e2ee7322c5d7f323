// Graph -> ONNX.
#pragma once

#include <string>

#include "ir/graph.hpp"

namespace opfuse {

struct WriteOptions {
  /// Opset of the default domain; 0: the one the model was read with (17 for graphs built in code), or the oldest newer
  /// one that has all operators of the graph. E::unsupported_op when the graph cannot be said in the opset asked for.
  int64_t opset = 0;
  /// Weights go to `path` + ".data" when the model would be larger than this; protobuf ends at 2 GB.
  size_t max_file_bytes = (size_t{1} << 31) - (size_t{1} << 20);
  /// Fused nodes become calls of model-local functions of domain dev.opfuse, one per distinct structure; read_onnx
  /// inlines them again and gives nodes and tensors their names back. false: their bodies in their place.
  bool functions = false;
};

/// Writes standard operators; composites as their bodies. Names, types, shapes and the order of inputs and outputs
/// never change; opaque nodes and unknown fields are written back as they were read. The file appears complete or not
/// at all. E::file_write_failed.
void write_onnx(const Graph& graph, const std::string& path, const WriteOptions& options = {});

/// The same in memory, weights included.
std::string write_onnx_bytes(const Graph& graph, const WriteOptions& options = {});

}  // namespace opfuse
