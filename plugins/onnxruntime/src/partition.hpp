// Which nodes of a graph opfuse takes: parts as large as possible that compile as a whole.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "opfuse/runtime.hpp"
#include "options.hpp"

namespace opfuse::ort {

struct Part {
  std::vector<const Node*> nodes;
  std::string key;  ///< names of its nodes' results: the same when ONNX Runtime hands the part back
  Executable executable;
};

std::string key_of(const std::vector<const Node*>& nodes);

/// The nodes as a compiled model. Throws opfuse::Error and Failure.
Executable compile_nodes(const Graph* graph, const std::vector<const Node*>& nodes, const Options& options);

/// `say` hears which nodes stay with ONNX Runtime, and why.
std::vector<Part> parts_of(const Graph* graph, const Options& options,
                           const std::function<void(const std::string&)>& say);

}  // namespace opfuse::ort
