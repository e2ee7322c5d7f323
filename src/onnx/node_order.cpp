// Kahn's algorithm with the file's order as tie break. ONNX demands that files are ordered; some exporters do not care.
#include "onnx/node_order.hpp"

#include <functional>
#include <queue>
#include <unordered_map>

#include "base/fail.hpp"
#include "onnx/opaque.hpp"

namespace opfuse::onnx {
namespace {

constexpr size_t kNotANode = static_cast<size_t>(-1);

using Definitions = std::unordered_map<Bytes, size_t>;

void define(Definitions& defined, Bytes name, size_t node, const std::vector<FlatNode>& nodes) {
  if (name.empty() || defined.emplace(name, node).second) return;
  Error error = fail(E::duplicate_name, "tensor \"{}\" is defined twice", name);
  if (node != kNotANode) error.node(display_name(nodes[node].proto));
  throw error.hint("every tensor of an ONNX graph has one definition; export the model again");
}

Definitions definitions(const std::vector<FlatNode>& nodes, const GraphProto& graph) {
  Definitions defined;
  for (const TensorProto& initializer : graph.initializers) {
    if (initializer.name.empty()) throw fail(E::bad_initializer, "an initializer has no name");
    define(defined, initializer.name, kNotANode, nodes);
  }
  Definitions inputs;
  for (const ValueInfo& input : graph.inputs) {
    if (input.name.empty()) throw fail(E::malformed_model, "a graph input has no name");
    define(inputs, input.name, kNotANode, nodes);  // an input may have an initializer: its default
    defined.emplace(input.name, kNotANode);
  }
  for (size_t i = 0; i < nodes.size(); ++i)
    for (Bytes output : nodes[i].proto.outputs) define(defined, output, i, nodes);
  return defined;
}

/// The nodes that node `i` waits for.
std::vector<size_t> waits_for(const NodeProto& node, const Definitions& defined) {
  std::vector<size_t> producers;
  const auto read = [&](Bytes name) {
    if (name.empty()) return;
    const auto found = defined.find(name);
    if (found == defined.end())
      throw fail(E::missing_tensor, "tensor \"{}\" is read but nothing defines it", name)
          .node(display_name(node))
          .op(std::string(node.op_type))
          .hint("it is neither an input, an initializer nor the result of a node; the model was cut or edited wrongly");
    if (found->second != kNotANode) producers.push_back(found->second);
  };
  for (Bytes name : node.inputs) read(name);
  for (Bytes name : captured_names(node)) read(name);
  return producers;
}

}  // namespace

std::string display_name(const NodeProto& node) {
  if (!node.name.empty()) return std::string(node.name);
  for (Bytes output : node.outputs)
    if (!output.empty()) return fmt::format("{}_{}", node.op_type, output);
  return std::string(node.op_type);
}

std::vector<size_t> node_order(const std::vector<FlatNode>& nodes, const GraphProto& graph) {
  const Definitions defined = definitions(nodes, graph);
  std::vector<std::vector<size_t>> readers(nodes.size());
  std::vector<size_t> waiting(nodes.size(), 0);
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (size_t producer : waits_for(nodes[i].proto, defined)) {
      readers[producer].push_back(i);
      ++waiting[i];
    }
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (waiting[i] == 0) ready.push(i);
  std::vector<size_t> order;
  order.reserve(nodes.size());
  while (!ready.empty()) {
    const size_t i = ready.top();
    ready.pop();
    order.push_back(i);
    for (size_t reader : readers[i])
      if (--waiting[reader] == 0) ready.push(reader);
  }
  for (size_t i = 0; i < nodes.size(); ++i)
    if (waiting[i] != 0)
      throw fail(E::cyclic_graph, "the nodes of the graph wait for each other in a cycle")
          .node(display_name(nodes[i].proto))
          .op(std::string(nodes[i].proto.op_type));
  return order;
}

}  // namespace opfuse::onnx
