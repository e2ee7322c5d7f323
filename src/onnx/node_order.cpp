// Kahn's algorithm with the file's order as tie break. ONNX demands that files are ordered; some exporters do not care.
// Where nodes wait for each other, one of them goes first, so that the nodes behind a cycle are looked at too.
#include "onnx/node_order.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>

#include "base/fail.hpp"
#include "onnx/opaque.hpp"

namespace opfuse::onnx {
namespace {

constexpr size_t kNotANode = static_cast<size_t>(-1);

class NodeSorter {
 public:
  NodeSorter(const std::vector<FlatNode>& nodes, const GraphProto& graph, Problems& problems)
      : nodes_(nodes), graph_(graph), problems_(problems) {}

  NodeOrder run() {
    define_all();
    producers_.resize(nodes_.size());
    for (size_t i = 0; i < nodes_.size() && !problems_.full(); ++i) problems_.attempt([&] { read_operands(i); });
    if (!problems_.full()) sort();
    return std::move(result_);
  }

 private:
  using Definitions = std::unordered_map<Bytes, size_t>;

  void define(Definitions& defined, Bytes name, size_t node) {
    if (name.empty() || defined.emplace(name, node).second) return;
    result_.broken.insert(name);
    Error error = fail(E::duplicate_name, "tensor \"{}\" is defined twice", name);
    if (node != kNotANode) error.node(display_name(nodes_[node].proto)).op(std::string(nodes_[node].proto.op_type));
    throw error.hint("every tensor of an ONNX graph has one definition; export the model again");
  }

  template <class Step>
  void attempt(Step&& step) {
    if (!problems_.full()) problems_.attempt(step);
  }

  void define_all() {
    for (const TensorProto& initializer : graph_.initializers)
      attempt([&] {
        if (initializer.name.empty()) throw fail(E::bad_initializer, "an initializer has no name");
        define(defined_, initializer.name, kNotANode);
      });
    for (Bytes name : graph_.sparse_initializers) attempt([&] { define(defined_, name, kNotANode); });
    Definitions inputs;
    for (const ValueInfo& input : graph_.inputs)
      attempt([&] {
        if (input.name.empty()) throw fail(E::malformed_model, "a graph input has no name");
        defined_.emplace(input.name, kNotANode);
        define(inputs, input.name, kNotANode);  // an input may have an initializer: its default
      });
    for (size_t i = 0; i < nodes_.size(); ++i)
      for (Bytes output : nodes_[i].proto.outputs) attempt([&] { define(defined_, output, i); });
  }

  void read_operands(size_t i) {
    const NodeProto& node = nodes_[i].proto;
    for (Bytes name : node.inputs) read(name, i);
    try {
      for (Bytes name : captured_names(node)) read(name, i);
    } catch (Error& error) {
      result_.unreadable.insert(i);
      throw error.node(display_name(node)).op(std::string(node.op_type));
    }
  }

  void read(Bytes name, size_t i) {
    if (name.empty()) return;
    const auto found = defined_.find(name);
    if (found != defined_.end()) {
      if (found->second != kNotANode) producers_[i].push_back(found->second);
    } else if (result_.broken.insert(name).second) {
      const NodeProto& node = nodes_[i].proto;
      attempt([&] {
        throw fail(E::missing_tensor, "tensor \"{}\" is read but nothing defines it", name)
            .node(display_name(node))
            .op(std::string(node.op_type))
            .hint(
                "it is neither an input, an initializer nor the result of a node; the model was cut or edited wrongly");
      });
    }
  }

  void sort() {
    std::vector<std::vector<size_t>> readers(nodes_.size());
    std::vector<size_t> waiting(nodes_.size(), 0);
    done_.resize(nodes_.size(), false);
    for (size_t i = 0; i < nodes_.size(); ++i)
      for (size_t producer : producers_[i]) {
        readers[producer].push_back(i);
        ++waiting[i];
      }
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (waiting[i] == 0) ready.push(i);
    result_.order.reserve(nodes_.size());
    for (size_t first = 0;;) {
      while (!ready.empty()) {
        const size_t i = ready.top();
        ready.pop();
        if (done_[i]) continue;
        done_[i] = true;
        result_.order.push_back(i);
        for (size_t reader : readers[i])
          if (--waiting[reader] == 0) ready.push(reader);
      }
      while (first < nodes_.size() && done_[first]) ++first;
      if (first == nodes_.size() || problems_.full()) return;
      ready.push(first_of_cycle(first));
    }
  }

  /// Follows what node `from` waits for until a node comes again; records that cycle, and gives its first node.
  size_t first_of_cycle(size_t from) {
    std::vector<size_t> path;
    std::unordered_map<size_t, size_t> place;
    size_t at = from;
    while (place.emplace(at, path.size()).second) {
      path.push_back(at);
      for (size_t producer : producers_[at])
        if (!done_[producer]) {
          at = producer;
          break;
        }
    }
    path.erase(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(place.at(at)));
    for (size_t i : path) result_.broken.insert(nodes_[i].proto.outputs.begin(), nodes_[i].proto.outputs.end());
    const size_t first = *std::min_element(path.begin(), path.end());
    attempt([&] {
      throw fail(E::cyclic_graph, "{} wait{} for {} in a cycle",
                 path.size() == 1 ? "the node" : fmt::format("{} nodes", path.size()), path.size() == 1 ? "s" : "",
                 path.size() == 1 ? "itself" : "each other")
          .node(display_name(nodes_[first].proto))
          .op(std::string(nodes_[first].proto.op_type));
    });
    return first;
  }

  const std::vector<FlatNode>& nodes_;
  const GraphProto& graph_;
  Problems& problems_;
  Definitions defined_;
  std::vector<std::vector<size_t>> producers_;
  std::vector<bool> done_;
  NodeOrder result_;
};

}  // namespace

std::string display_name(const NodeProto& node) {
  if (!node.name.empty()) return std::string(node.name);
  for (Bytes output : node.outputs)
    if (!output.empty()) return fmt::format("{}_{}", node.op_type, output);
  return std::string(node.op_type);
}

NodeOrder node_order(const std::vector<FlatNode>& nodes, const GraphProto& graph, Problems& problems) {
  return NodeSorter(nodes, graph, problems).run();
}

}  // namespace opfuse::onnx
