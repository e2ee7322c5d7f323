// The few nodes behind the operand are run once in the types that they have; they stay for who else reads them.
#include "onnx/settle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace opfuse::onnx {
namespace {

bool is_static(const TensorType& type) {
  return type.dtype != DType::unknown && byte_size(type.dtype) > 0 && type.shape.ranked && type.shape.is_static();
}

constexpr int64_t kLooked = 16;  ///< times the limit: further back nobody looks whether all is constant

/// Producers in reverse order of reading; empty where something else than constants is read, or a limit is met.
std::vector<const Node*> behind(const Value* value, const Limits& limits, std::string& limited) {
  std::vector<const Node*> nodes;
  std::set<const Node*> seen;  // looked up only
  std::vector<const Value*> open{value};
  std::string met;
  while (!open.empty()) {
    const Value* v = open.back();
    open.pop_back();
    if (v->is_constant()) continue;
    const Node* node = v->producer;
    if (!node || !node->op->reference || !is_static(v->type)) return {};
    if (const int64_t elements = v->type.shape.elements().value(); elements > limits.settled_elements && met.empty())
      met = fmt::format("{} numbers, {}", elements, how_to_raise("settled_elements"));
    if (!seen.insert(node).second) continue;
    nodes.push_back(node);
    if (static_cast<int64_t>(nodes.size()) / kLooked > limits.settled_nodes) break;
    for (const Value* operand : node->inputs)
      if (operand) open.push_back(operand);
  }
  if (const size_t count = nodes.size(); static_cast<int64_t>(count) > limits.settled_nodes && met.empty())
    met = fmt::format("{} nodes, {}", count, how_to_raise("settled_nodes"));
  if (met.empty()) return nodes;
  limited = "an operand that decides the shape is not run when the model is read, being of " + met;
  return {};
}

}  // namespace

Value* settled(Graph& graph, Value* value, const Limits& limits, std::string& limited) {
  if (!value || value->is_constant()) return value;
  std::vector<const Node*> nodes = behind(value, limits, limited);
  if (nodes.empty()) return value;
  std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return a->id < b->id; });
  std::map<const Value*, Tensor> known;
  for (const Node* node : nodes) {
    std::vector<const Tensor*> operands;
    for (const Value* v : node->inputs)
      operands.push_back(!v ? nullptr : v->is_constant() ? &*v->constant : &known.at(v));
    std::vector<Tensor> results = node->op->reference(node->attrs(), operands, Precision::typed);
    for (size_t i = 0; i < results.size() && i < node->outputs.size(); ++i)
      known[node->outputs[i]] = std::move(results[i]);
  }
  return graph.add_constant(known.at(value));
}

}  // namespace opfuse::onnx
