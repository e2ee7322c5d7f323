#include "shape/means.hpp"

#include <algorithm>

#include "fusion/grouping.hpp"
#include "ir/outline.hpp"
#include "ops/conv.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

/// The group of the catalogue's module for means of planes.
bool is_mean(const Node& node) { return node.op == fused_op() && node.pattern == "AdaptiveAvgPool"; }

bool ends_depthwise(const Node& node) {
  if (node.outputs.size() != 1) return false;
  const Node* last = node.body ? nullptr : &node;
  if (node.body)
    for (const Node* inner : node.body->nodes())
      if (inner->is("conv")) last = inner;
  return last && last->is("conv") && last->as<Conv>().group > 1 && last->input(1)->type.shape.rank() > 1 &&
         last->input(1)->type.shape[1] == Dim(1);
}

std::optional<Decline> unfit(const Node& mean) {
  const Shape &t = mean.input(0)->type.shape, &m = mean.output()->type.shape;
  if (mean.body->nodes().size() > 1) return Decline{"epilogue", "the group goes on behind the mean", {}};
  if (t.rank() != 4) return Decline{"rank", "only two-dimensional images", {t.text()}};
  if (m.rank() != 4) return Decline{"shape_changes", "the mean drops the axes of the image", {m.text()}};
  if (!t[2].is_constant() || !t[3].is_constant())
    return Decline{"symbolic", "parts end where bands of rows do, so the image's extents must be known", {t.text()}};
  return std::nullopt;
}

/// Means of `count` bands of the map's rows.
Node* band_means(Graph& graph, Node* mean, int64_t count) {
  Value* map = mean->input(0);
  const std::vector<int64_t> band{map->type.shape[2].value() / count, map->type.shape[3].value()};
  Node* node = graph.add_node(ops().find("average_pool"), AttrMap{{"kernel_shape", band}, {"strides", band}}, {map}, 1,
                              mean->sources, mean);
  node->output()->name = mean->output()->name + ".bands";
  return node;
}

/// The mean reads the bands' means instead of the map, or is the only band's.
void read_bands(Graph& graph, Node* mean, Node* bands, int64_t count) {
  Node* rest = bands;
  if (count > 1)
    rest = graph.add_node(ops().find("global_average_pool"), AttrMap{}, {bands->output()}, 1, mean->sources, mean);
  else
    bands->output()->name.clear();
  take_over(graph, mean->output(), rest->output());
  if (count > 1) outline(graph, {rest}, {fused_op(), mean->label, mean->pattern});
  graph.erase(mean);
}

ChainVerdict try_mean(Graph& graph, Node* mean, Node* map, const MeanAdvice& advice) {
  ChainVerdict verdict = verdict_of("means", *map, *mean);
  verdict.refused = unfit(*mean);
  if (verdict.refused) return verdict;
  const int64_t count = advice.bands(*map);
  const Outline how{fused_op(), verdict.first + "+" + verdict.second, map->pattern + "+" + mean->pattern};
  Node* bands = band_means(graph, mean, count);
  verdict.refused = advice.joined(*outline_copy(graph, {map, bands}, how).node);
  if (verdict.refused) {
    graph.erase(bands);
    return verdict;
  }
  read_bands(graph, mean, bands, count);
  expand_groups(*outline(graph, {map, bands}, how)->body);
  return verdict;
}

}  // namespace

std::vector<ChainVerdict> join_means(Graph& fused, const MeanAdvice& advice) {
  std::vector<std::pair<Node*, Node*>> pairs;  // no node is in two of them
  const auto taken = [&](const Node* map) {
    return std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) { return pair.second == map; });
  };
  for (Node* mean : fused.nodes())
    if (is_mean(*mean))
      if (Node* map = mean->input(0)->producer; map && ends_depthwise(*map) && !taken(map))
        pairs.emplace_back(mean, map);
  std::vector<ChainVerdict> verdicts;
  for (const auto& [mean, map] : pairs) verdicts.push_back(try_mean(fused, mean, map, advice));
  return verdicts;
}

}  // namespace opfuse
