#include "link/reference_launch.hpp"

#include "base/fail.hpp"
#include "interp/interpreter.hpp"
#include "link/buffer_access.hpp"

namespace opfuse {
namespace {

const Node* find_node(const Graph& graph, const std::string& name) {
  for (const Node* node : graph.nodes()) {
    if (node->body) {
      if (const Node* inner = find_node(*node->body, name)) return inner;
    } else if (node->name() == name) {
      return node;
    }
  }
  return nullptr;
}

}  // namespace

HostFunction reference_launch(const Program& program, const Launch& launch, const std::shared_ptr<const Graph>& graph) {
  OPFUSE_CHECK(graph, "reference launch {} without a graph", launch.name);
  const Node* node = find_node(*graph, launch.sources.front());
  OPFUSE_CHECK(node, "reference launch {}: no node '{}'", launch.name, launch.sources.front());
  std::vector<std::optional<Buffer>> buffers;
  for (int b : launch.buffers)
    buffers.push_back(b < 0 ? std::nullopt : std::optional(program.buffers[static_cast<size_t>(b)]));
  return [graph, node, buffers](std::span<void* const> pointers, const SymbolValues& symbols) {
    std::vector<Tensor> loaded(node->inputs.size());
    std::vector<const Tensor*> operands(node->inputs.size(), nullptr);
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      if (!buffers[i]) continue;
      loaded[i] = BufferAccess(*buffers[i], symbols).load(pointers[i]);
      operands[i] = &loaded[i];
    }
    InterpretOptions options;
    options.precision = Precision::typed;
    options.symbols = symbols;
    const std::vector<Tensor> results = interpret_node(*node, operands, options);
    for (size_t r = 0; r < results.size(); ++r) {
      const size_t at = node->inputs.size() + r;
      if (at < buffers.size() && buffers[at]) BufferAccess(*buffers[at], symbols).store(results[r], pointers[at]);
    }
  };
}

}  // namespace opfuse
