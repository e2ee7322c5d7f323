// Means: a mean over whole planes is summed by the depthwise group (or chain) that makes the map.
//
//     x -- D: depthwise -- t -- P: mean -- m                 t is read by others too
//     x -- [D, means of bands] -- t, b -- P -- m             b: [n, c, bands, 1]; of one band, b is m
//
// The map is not read again. Each band of rows belongs to one part of the kernel, so equal bands have equal weights in
// the mean of their means.
#include "ir/body.hpp"
#include "ops/conv.hpp"
#include "ops/is_a.hpp"
#include "ops/registry.hpp"
#include "shape/join.hpp"

namespace opfuse {
namespace {

/// The group of the catalogue's module for means of planes.
bool is_mean(const Node& node) { return node.op == fused_op() && node.pattern == "AdaptiveAvgPool"; }

bool ends_depthwise(const Node& node) {
  if (node.outputs.size() != 1 || (node.body && !stands_for_body(node))) return false;
  const Node* last = node.body ? nullptr : &node;
  if (node.body)
    for (const Node* inner : node.body->nodes())
      if (is_a<Conv>(*inner)) last = inner;
  return last && is_depthwise(*last);
}

std::optional<JoinPair> find(Node& mean) {
  const Value* data = is_mean(mean) ? mean.input(0) : nullptr;  // none of a mean of constants
  Node* map = data ? data->producer : nullptr;
  return map && ends_depthwise(*map) ? std::optional(JoinPair{map, &mean}) : std::nullopt;
}

std::optional<Decline> unfit(const JoinPair& pair) {
  const Node& mean = *pair.second;
  const Shape &t = mean.input(0)->type.shape, &m = mean.output()->type.shape;
  if (mean.body->nodes().size() > 1) return Decline{"epilogue", "the group goes on behind the mean", {}};
  if (t.rank() != 4) return Decline{"rank", "only two-dimensional images", {t.text()}};
  if (m.rank() != 4) return Decline{"shape_changes", "the mean drops the axes of the image", {m.text()}};
  if (!t[2].is_constant() || !t[3].is_constant())
    return Decline{"symbolic", "parts end where bands of rows do, so the image's extents must be known", {t.text()}};
  return std::nullopt;
}

/// Means of bands of the map's rows.
Node* band_means(Graph& graph, const JoinPair& pair, const ShapeContext& context) {
  Node* mean = pair.second;
  Value* map = mean->input(0);
  const int64_t count = context.bands ? context.bands(*pair.first) : 1;
  const std::vector<int64_t> band{map->type.shape[2].value() / count, map->type.shape[3].value()};
  Node* node = graph.add_node(ops().find("average_pool"), AttrMap{{"kernel_shape", band}, {"strides", band}}, {map}, 1,
                              mean->sources, mean);
  node->output()->name = mean->output()->name + ".bands";
  return node;
}

/// The mean reads the bands' means instead of the map, or is the only band's.
void read_bands(Graph& graph, Node* mean, Node* bands) {
  const bool several = bands->output()->type.shape[2] != Dim(1);
  Node* rest = bands;
  if (several)
    rest = graph.add_node(ops().find("global_average_pool"), AttrMap{}, {bands->output()}, 1, mean->sources, mean);
  else
    bands->output()->name.clear();
  take_over(graph, mean->output(), rest->output());
  if (several) outline(graph, {rest}, {fused_op(), mean->label, mean->pattern});
  graph.erase(mean);
}

}  // namespace

ShapingPass join_means() {
  return joining({.name = "join-means",
                  .summary = "Means of planes are summed by the kernel that makes the map.",
                  .find = find,
                  .unfit = unfit,
                  .stand_in = band_means,
                  .settle = read_bands});
}

}  // namespace opfuse
