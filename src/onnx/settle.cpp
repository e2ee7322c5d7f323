// The few nodes behind the operand are run once in the types that they have; they stay for who else reads them.
#include "onnx/settle.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace opfuse::onnx {
namespace {

constexpr size_t kMostNodes = 64;
constexpr int64_t kMostElements = 4096;  // of any value on the way

bool is_small(const TensorType& type) {
  return type.dtype != DType::unknown && byte_size(type.dtype) > 0 && type.shape.ranked && type.shape.is_static() &&
         type.shape.elements().value() <= kMostElements;
}

/// Producers in reverse order of reading; empty where something else than constants is read.
std::vector<const Node*> behind(const Value* value) {
  std::vector<const Node*> nodes;
  std::vector<const Value*> open{value};
  while (!open.empty()) {
    const Value* v = open.back();
    open.pop_back();
    if (v->is_constant()) continue;
    const Node* node = v->producer;
    if (!node || !node->op->reference || !is_small(v->type) || nodes.size() == kMostNodes) return {};
    if (std::find(nodes.begin(), nodes.end(), node) != nodes.end()) continue;
    nodes.push_back(node);
    for (const Value* operand : node->inputs)
      if (operand) open.push_back(operand);
  }
  return nodes;
}

}  // namespace

Value* settled(Graph& graph, Value* value) {
  if (!value || value->is_constant()) return value;
  std::vector<const Node*> nodes = behind(value);
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
