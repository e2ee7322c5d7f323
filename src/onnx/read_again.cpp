// The graph must equal what its file gives without sizes: one that was edited since is never replaced.
#include "onnx/read_again.hpp"

#include <algorithm>

#include "ir/fix_input.hpp"
#include "onnx/read.hpp"
#include "opfuse/error.hpp"

namespace opfuse {

static int64_t not_understood(const Graph& graph) {
  const auto& nodes = graph.nodes();
  return std::count_if(nodes.begin(), nodes.end(), [](const Node* node) { return node->op == opaque_op(); });
}

std::optional<Graph> read_again(const Graph& graph, const SymbolValues& dimensions, const Limits& limits) {
  if (dimensions.empty() || graph.model_file.empty() || not_understood(graph) == 0) return std::nullopt;
  ReadOptions options;
  options.limits = limits;
  for (const auto& [name, value] : fixed_inputs(graph)) options.fixed_inputs[name] = value;
  try {
    if (!equal(read_onnx(graph.model_file, options), graph)) return std::nullopt;
    options.dimensions = dimensions;
    Graph sized = read_onnx(graph.model_file, options);
    if (not_understood(sized) >= not_understood(graph)) return std::nullopt;
    return sized;
  } catch (const Error&) {  // gone, or wrong for these sizes: binding them says so
    return std::nullopt;
  }
}

}  // namespace opfuse
