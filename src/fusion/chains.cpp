#include "fusion/chains.hpp"

#include <fmt/format.h>

#include <set>

#include "fusion/gates.hpp"
#include "fusion/grouping.hpp"
#include "ir/outline.hpp"
#include "ir/value_name.hpp"
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

struct Pair {
  Node *first, *second;
  bool gate;
};

/// No node is in two of them.
std::vector<Pair> pairs_of(const Graph& graph) {
  std::vector<Pair> pairs;
  std::set<const Node*> taken;
  for (Node* a : graph.nodes()) {
    Node* depthwise = depthwise_reader(*a);
    Node* b = depthwise ? depthwise : gated_reader(*a);
    if (b && !taken.contains(a) && taken.insert(b).second) pairs.push_back({a, b, !depthwise});
  }
  return pairs;
}

ChainVerdict try_pair(Graph& graph, const Pair& pair, const ChainAdvice& advice) {
  const auto& [a, b, gate] = pair;
  ChainVerdict verdict{
      name_of_group(*a),        name_of_group(*b), {}, value_bytes(*a->output(), {}), value_name(*a->output()), gate,
      read_elsewhere(graph, *a)};
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
  std::vector<ChainVerdict> verdicts;
  for (const Pair& pair : pairs_of(fused)) verdicts.push_back(try_pair(fused, pair, advice));
  return verdicts;
}

std::vector<std::string> chain_notes(const std::vector<ChainVerdict>& verdicts) {
  std::vector<std::string> notes;
  for (const bool gate : {false, true}) {
    int64_t bytes = 0, joined = 0, pairs = 0;
    for (const ChainVerdict& v : verdicts) {
      if (v.gate != gate || v.kind != "chain") continue;
      ++pairs;
      if (!v.refused) bytes += v.bytes, ++joined;
    }
    if (joined == 0) continue;
    const double megabytes = static_cast<double>(bytes) * 1e-6;
    notes.push_back(
        gate ? fmt::format("{} of {} gated MLPs run their two products as one: {:.2f} MB between them are never stored",
                           joined, pairs, megabytes)
             : fmt::format("{} of {} pairs of a convolution and a depthwise one run as chains: {:.2f} MB between them "
                           "stay in caches",
                           joined, pairs, megabytes));
  }
  return notes;
}

}  // namespace opfuse
