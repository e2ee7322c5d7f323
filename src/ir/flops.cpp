#include "ir/flops.hpp"

#include <set>

#include "ir/body.hpp"

namespace opfuse {

double flops_of(const Node& node) {
  if (node.body) return flops_of(*node.body) * static_cast<double>(times_of(node));
  if (!node.op->cost) return 0;
  std::vector<TensorType> in, out;
  for (const Value* value : node.inputs) in.push_back(value != nullptr ? value->type : TensorType{});
  for (const Value* value : node.outputs) out.push_back(value->type);
  const Dim flops = node.op->cost(node.attrs(), in, out).flops;
  std::set<std::string> symbols;
  flops.collect_symbols(symbols);
  SymbolValues ones;
  for (const std::string& symbol : symbols) ones[symbol] = 1;
  return static_cast<double>(flops.evaluate(ones));
}

double flops_of(const Graph& graph) {
  double total = 0;
  for (const Node* node : graph.nodes()) total += flops_of(*node);
  return total;
}

}  // namespace opfuse
