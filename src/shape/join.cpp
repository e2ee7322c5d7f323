// All pairs are found before the first is joined: what a pass joins is seen by the passes behind it, not by itself.
#include "shape/join.hpp"

#include <set>

#include "fusion/grouping.hpp"
#include "ir/value_name.hpp"
#include "ops/conv.hpp"
#include "ops/is_a.hpp"

namespace opfuse {
namespace {

ShapeVerdict verdict_of(const Join& join, const JoinPair& pair) {
  const Value& between = *pair.first->output();
  ShapeVerdict verdict{.pass = join.name,
                       .nodes = {name_of_group(*pair.first), name_of_group(*pair.second)},
                       .value = value_name(between),
                       .numbers = {{"bytes", value_bytes(between, {})}}};
  for (const Node* node : {pair.first, pair.second})
    for (const Source& source : node->sources) verdict.sources.push_back(source.name);
  return verdict;
}

std::vector<JoinPair> pairs_of(const Graph& graph, const Join& join) {
  std::vector<JoinPair> pairs;
  std::set<const Node*> taken;  // looked up only
  for (Node* node : graph.nodes()) {
    const std::optional<JoinPair> pair = join.find(*node);
    if (!pair || taken.contains(pair->first) || taken.contains(pair->second)) continue;
    if (pair->first->outputs.size() != 1 || pair->second->outputs.size() != 1) continue;
    taken.insert({pair->first, pair->second});
    pairs.push_back(*pair);
  }
  return pairs;
}

Outline named_after(const Join& join, const JoinPair& pair) {
  const std::string first = join.first_name ? join.first_name : name_of_group(*pair.first);
  const std::string pattern = join.first_name ? join.first_name : pair.first->pattern;
  return {fused_op(), first + "+" + name_of_group(*pair.second), pattern + "+" + pair.second->pattern};
}

ShapeVerdict try_join(Graph& graph, const Join& join, const JoinPair& pair, const ShapeContext& context) {
  ShapeVerdict verdict = verdict_of(join, pair);
  verdict.refused = join.unfit(pair);
  if (!verdict.refused) verdict.refused = context.switched_off(join.name);
  if (!verdict.refused && join.unwanted) verdict.refused = join.unwanted(pair, context);
  if (verdict.refused) return verdict;
  const Outline how = named_after(join, pair);
  Node* second = join.stand_in ? join.stand_in(graph, pair, context) : pair.second;
  verdict.refused = context.refuses(join.name, *outline_copy(graph, {pair.first, second}, how).node);
  if (verdict.refused) {
    if (second != pair.second) graph.erase(second);
    return verdict;
  }
  if (join.settle) join.settle(graph, pair.second, second);
  expand_groups(*outline(graph, {pair.first, second}, how)->body);
  return verdict;
}

}  // namespace

ShapingPass joining(const Join& join) {
  const auto run = [join](Graph& graph, const ShapeContext& context, std::vector<ShapeVerdict>& verdicts) {
    bool changed = false;
    for (const JoinPair& pair : pairs_of(graph, join)) {
      verdicts.push_back(try_join(graph, join, pair, context));
      changed |= !verdicts.back().refused;
    }
    return changed;
  };
  return {join.name, join.summary, run};
}

std::optional<Decline> read_elsewhere(const JoinPair& pair) {
  const Value& between = *pair.first->output();
  if (between.as_output > 0)
    return Decline{"graph_output", "the map between them is an output of the graph", {between.name}};
  if (!between.only_use())
    return Decline{"multi_consumer", "the map between them is read elsewhere too", {between.name}};
  return std::nullopt;
}

std::variant<Node*, Decline> outline_unless(Graph& graph, const std::vector<Node*>& nodes, const Outline& how,
                                            const Legality& refuses) {
  if (auto why = refuses(*outline_copy(graph, nodes, how).node)) return *why;
  Node* joined = outline(graph, nodes, how);
  expand_groups(*joined->body);
  return joined;
}

const Node* leading_convolution(const Node& node) {
  if (node.body && node.op != fused_op()) return nullptr;
  const Node& first = node.body ? *node.body->nodes().front() : node;
  return is_a<Conv>(first) ? &first : nullptr;
}

}  // namespace opfuse
