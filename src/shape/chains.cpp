#include "shape/chains.hpp"

#include <fmt/format.h>

#include <set>

#include "base/fail.hpp"
#include "fusion/grouping.hpp"
#include "ir/outline.hpp"
#include "ir/value_name.hpp"
#include "ops/conv.hpp"
#include "shape/gates.hpp"

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

struct Pair {
  const char* kind;
  Node *first, *second;
};

/// No node is in two of them.
std::vector<Pair> pairs_of(const Graph& graph) {
  std::vector<Pair> pairs;
  std::set<const Node*> taken;
  for (Node* a : graph.nodes()) {
    Node* depthwise = depthwise_reader(*a);
    Node* b = depthwise ? depthwise : gated_reader(*a);
    if (b && !taken.contains(a) && taken.insert(b).second) pairs.push_back({depthwise ? "chain" : "gate", a, b});
  }
  return pairs;
}

ChainVerdict try_pair(Graph& graph, const Pair& pair, const ChainAdvice& advice) {
  const auto& [kind, a, b] = pair;
  ChainVerdict verdict = verdict_of(kind, *a, *b);
  verdict.refused = read_elsewhere(graph, *a->output());
  if (verdict.refused) return verdict;
  const Outline how{fused_op(), verdict.first + "+" + verdict.second, a->pattern + "+" + b->pattern};
  verdict.refused = advice(*outline_copy(graph, {a, b}, how).node);
  if (!verdict.refused) expand_groups(*outline(graph, {a, b}, how)->body);
  return verdict;
}

/// How reports say it: of one pair, of several, and what is spared.
struct Wording {
  const char *kind, *one, *several, *spared;
};
constexpr Wording kWordings[] = {
    {"chain", "one launch", "pairs of a convolution and a depthwise one run as chains", "between them stay in caches"},
    {"gate", "one launch", "gated MLPs run their two products as one", "between them are never stored"},
    {"means", "summed while the map is made", "means of planes are summed while their map is made",
     "are not read again"},
    {"factor", "a factor of the weights", "factors of channels are factors of the next convolution's weights",
     "are neither stored nor read again"}};

}  // namespace

std::vector<ChainVerdict> join_chains(Graph& fused, const ChainAdvice& advice) {
  std::vector<ChainVerdict> verdicts;
  for (const Pair& pair : pairs_of(fused)) verdicts.push_back(try_pair(fused, pair, advice));
  return verdicts;
}

ChainVerdict verdict_of(std::string kind, const Node& first, const Node& second) {
  const Value& between = *first.output();
  ChainVerdict verdict{.kind = std::move(kind),
                       .first = name_of_group(first),
                       .second = name_of_group(second),
                       .bytes = value_bytes(between, {}),
                       .between = value_name(between)};
  for (const Node* node : {&first, &second})
    for (const Source& source : node->sources) verdict.sources.push_back(source.name);
  return verdict;
}

std::optional<Decline> read_elsewhere(const Graph& graph, const Value& between) {
  if (graph.is_output(&between))
    return Decline{"graph_output", "the map between them is an output of the graph", {between.name}};
  if (between.uses.size() != 1 || graph.read_count(&between) != 1)
    return Decline{"multi_consumer", "the map between them is read elsewhere too", {between.name}};
  return std::nullopt;
}

std::string sentence_of(const ChainVerdict& verdict) {
  if (verdict.refused) return fmt::format("two launches, {}: {}", verdict.refused->code, verdict.refused->message);
  for (const Wording& words : kWordings)
    if (verdict.kind == words.kind)
      return fmt::format("{}, {:.2f} MB {}", words.one, static_cast<double>(verdict.bytes) * 1e-6, words.spared);
  throw fail(E::internal, "a pair of kind '{}'", verdict.kind);
}

std::vector<std::string> chain_notes(const std::vector<ChainVerdict>& verdicts) {
  std::vector<std::string> notes;
  for (const Wording& words : kWordings) {
    int64_t bytes = 0, joined = 0, pairs = 0;
    for (const ChainVerdict& v : verdicts) {
      if (v.kind != words.kind) continue;
      ++pairs;
      if (!v.refused) bytes += v.bytes, ++joined;
    }
    if (joined > 0)
      notes.push_back(fmt::format("{} of {} {}: {:.2f} MB {}", joined, pairs, words.several,
                                  static_cast<double>(bytes) * 1e-6, words.spared));
  }
  return notes;
}

}  // namespace opfuse
