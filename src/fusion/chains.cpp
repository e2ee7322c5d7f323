#include "fusion/chains.hpp"

#include <fmt/format.h>

#include "fusion/grouping.hpp"
#include "ir/outline.hpp"
#include "ops/conv.hpp"

namespace opfuse {
namespace {

const Node& first_node(const Node& node) { return node.body ? *node.body->nodes().front() : node; }

std::string name_of_group(const Node& node) { return node.label.empty() ? node.name() : node.label; }

bool is_convolution(const Node& node) {
  return (node.op == fused_op() || !node.body) && first_node(node).is("conv") && node.outputs.size() == 1;
}

bool is_depthwise(const Node& node) {
  const Node& conv = first_node(node);
  const Shape& weights = conv.input(1)->type.shape;
  return conv.as<Conv>().group > 1 && weights.ranked && weights.rank() > 1 && weights[1] == Dim(1);
}

/// The depthwise group that reads the convolution's result as its data.
Node* depthwise_reader(const Node& a) {
  if (!is_convolution(a) || is_depthwise(a)) return nullptr;
  for (const Use& use : a.output()->uses)
    if (is_convolution(*use.node) && is_depthwise(*use.node)) {
      const Node& conv = first_node(*use.node);
      const Value* data = use.node->body ? use.node->body->inputs()[use.index] : a.output();
      if (conv.input(0) == data) return use.node;
    }
  return nullptr;
}

std::optional<Decline> read_elsewhere(const Graph& graph, const Node& a) {
  const Value* between = a.output();
  if (graph.is_output(between))
    return Decline{"graph_output", "the map between them is an output of the graph", {between->name}};
  if (between->uses.size() != 1 || graph.read_count(between) != 1)
    return Decline{"multi_consumer", "the map between them is read elsewhere too", {between->name}};
  return std::nullopt;
}

ChainVerdict try_pair(Graph& graph, Node* a, Node* b, const ChainAdvice& advice) {
  ChainVerdict verdict{
      name_of_group(*a), name_of_group(*b), {}, value_bytes(*a->output(), {}), read_elsewhere(graph, *a)};
  for (const Node* node : {a, b})
    for (const Source& source : node->sources) verdict.sources.push_back(source.name);
  if (verdict.refused) return verdict;
  const Outline how{fused_op(), verdict.first + "+" + verdict.second, a->pattern + "+" + b->pattern};
  verdict.refused = advice(*outline_copy(graph, {a, b}, how).node);
  if (!verdict.refused) expand_groups(*outline(graph, {a, b}, how)->body);
  return verdict;
}

}  // namespace

std::vector<ChainVerdict> join_chains(Graph& fused, const ChainAdvice& advice) {
  std::vector<std::pair<Node*, Node*>> pairs;  // no node is in two of them
  for (Node* a : fused.nodes())
    if (Node* b = depthwise_reader(*a)) pairs.emplace_back(a, b);
  std::vector<ChainVerdict> verdicts;
  for (const auto& [a, b] : pairs) verdicts.push_back(try_pair(fused, a, b, advice));
  return verdicts;
}

std::vector<std::string> chain_notes(const std::vector<ChainVerdict>& verdicts) {
  int64_t bytes = 0, joined = 0;
  for (const ChainVerdict& v : verdicts)
    if (!v.refused) bytes += v.bytes, ++joined;
  if (joined == 0) return {};
  return {
      fmt::format("{} of {} pairs of a convolution and a depthwise one run as chains: {:.2f} MB between them stay in "
                  "caches",
                  joined, verdicts.size(), static_cast<double>(bytes) * 1e-6)};
}

}  // namespace opfuse
