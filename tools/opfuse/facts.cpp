// Costs come from the operators' own records (OpInfo::cost); an operator without one counts flops_per_element per
// result.
#include "facts.hpp"

#include <algorithm>

#include "ir/body.hpp"
#include "ir/located.hpp"

namespace opfuse::cli {
namespace {

double evaluate(const Dim& dim, const SymbolValues& symbols) {
  std::set<std::string> open;
  dim.collect_symbols(open);
  SymbolValues values = symbols;
  for (const std::string& name : open) values.emplace(name, 1);
  return static_cast<double>(dim.evaluate(values));
}

double elements(const Value& value, const SymbolValues& symbols) {
  if (!value.type.shape.ranked) return 0;
  double product = 1;
  for (const Dim& dim : value.type.shape.dims) product *= evaluate(dim, symbols);
  return product;
}

}  // namespace

double node_flops(const Node& node, const SymbolValues& symbols) {
  if (node.body) return graph_flops(*node.body, symbols) * static_cast<double>(times_of(node));
  if (node.op->cost) {
    std::vector<TensorType> in, out;
    for (const Value* value : node.inputs) in.push_back(value ? value->type : TensorType{});
    for (const Value* value : node.outputs) out.push_back(value->type);
    return evaluate(node.op->cost(node.attrs(), in, out).flops, symbols);
  }
  if (node.op->kind != OpKind::elementwise && node.op->kind != OpKind::reduction) return 0;
  double flops = 0;
  for (const Value* value : node.outputs) flops += elements(*value, symbols) * node.op->flops_per_element;
  return flops;
}

double graph_flops(const Graph& graph, const SymbolValues& symbols) {
  double flops = 0;
  for (const Node* node : graph.nodes()) flops += node_flops(*node, symbols);
  return flops;
}

double value_bytes(const Value& value, const SymbolValues& symbols) {
  return elements(value, symbols) * static_cast<double>(byte_size(value.type.dtype));
}

double activation_bytes(const Graph& graph, const SymbolValues& symbols) {
  double bytes = 0;
  for (const Node* node : graph.nodes()) {
    if (node->body && !stands_for_body(*node)) {
      bytes += activation_bytes(*node->body, symbols) * static_cast<double>(times_of(*node));
      continue;
    }
    for (const Value* value : node->inputs)
      if (value && !value->is_constant()) bytes += value_bytes(*value, symbols);
    for (const Value* value : node->outputs) bytes += value_bytes(*value, symbols);
  }
  return bytes;
}

double constant_bytes(const Graph& graph) {
  double bytes = 0;
  for (const Value* value : graph.constants()) bytes += static_cast<double>(value->constant->bytes());
  for (const Node* node : graph.nodes())
    if (node->body) bytes += constant_bytes(*node->body);
  return bytes;
}

std::vector<std::pair<std::string, int>> operator_counts(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const Node* node : graph.nodes()) ++counts[source_operator(*node)];
  std::vector<std::pair<std::string, int>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

}  // namespace opfuse::cli
