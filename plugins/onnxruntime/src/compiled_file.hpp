// Compiled models of ONNX Runtime: an EPContext node holds a part as an .opf, in the model or in a file beside it.
#pragma once

#include <string>
#include <vector>

#include "opfuse/runtime.hpp"
#include "options.hpp"

namespace opfuse::ort {

/// Whether the node is an EPContext that this plug-in wrote.
bool is_context_node(const Node* node);

/// Throws opfuse::Error for a file that cannot be loaded, and Failure.
Executable load_context(const Graph* graph, const Node* node);

/// The node that takes the place of `fused` in the model that ONNX Runtime writes.
Node* make_context_node(const Graph* graph, const std::string& name, const Executable& executable,
                        const Options& options);

}  // namespace opfuse::ort
