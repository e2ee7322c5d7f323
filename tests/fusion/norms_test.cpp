// A depthwise convolution and the LayerNorm of its channels: one group where the norm alone reads the map.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fusion/explain/shaping_text.hpp"
#include "fusion/prepared.hpp"
#include "ir/outline.hpp"
#include "shape/shaping_passes.hpp"
#include "testing/rewrite.hpp"

namespace opfuse {
namespace {

/// [conv, transpose] as a group, then a norm; `weights`: of the convolution.
Graph grouped(const std::string& weights, int groups, const std::string& results) {
  Graph graph = prepared_text("graph (%x: f32[2,24,5,7]) { %w = const rand<1> : f32" + weights +
                              " %s = const rand<2> : f32[24] %b = const rand<3> : f32[24]\n"
                              "%d = conv(%x, %w) {group = " +
                              std::to_string(groups) +
                              ", pads = [1,1,1,1]}\n"
                              "%t = transpose(%d) {perm = [0,2,3,1]} %n = layer_norm(%t, %s, %b)\n"
                              "%y = relu(%t) return " +
                              results + " }");
  graph.remove_dead_nodes();
  std::vector<Node*> first(graph.nodes().begin(), graph.nodes().begin() + 2);
  outline(graph, first, {fused_op(), "A", "ConvBN"});
  return graph;
}

TEST(Norms, JoinTheDepthwiseConvolutionInFront) {
  Graph graph = grouped("[24,1,3,3]", 24, "%n");
  const Graph before = graph.clone();
  const std::vector<ShapeVerdict> verdicts = join_norms()(graph, {});
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_FALSE(verdicts[0].refused);
  EXPECT_EQ(kind_of(verdicts[0]), "norm");
  EXPECT_EQ(verdicts[0].number("bytes"), 2 * 24 * 5 * 7 * 4);
  ASSERT_NO_THROW(verify(graph));
  ASSERT_EQ(graph.nodes().size(), 1u) << print(graph);
  testing::expect_same_values(before, graph, {.tolerance = 1e-12});
}

TEST(Norms, StayApartWhereTheMapIsReadElsewhere) {
  Graph graph = grouped("[24,1,3,3]", 24, "%n, %y");
  const std::string before = print(graph);
  const std::vector<ShapeVerdict> verdicts = join_norms()(graph, {});
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].code(), "multi_consumer");
  EXPECT_EQ(print(graph), before);
}

TEST(Norms, AreNotThoseOfOtherConvolutions) {
  Graph graph = grouped("[24,24,3,3]", 1, "%n");
  EXPECT_TRUE(join_norms()(graph, {}).empty());
}

}  // namespace
}  // namespace opfuse
