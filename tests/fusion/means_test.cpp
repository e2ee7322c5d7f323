// Means of planes: summed by the group that makes the map, of one band or of several, and which are spared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fusion/explain/shaping_text.hpp"
#include "fusion/prepared.hpp"
#include "shape/shaping_passes.hpp"
#include "testing/rewrite.hpp"

namespace opfuse {
namespace {

/// A depthwise convolution whose map is averaged by `mean` and read again.
std::string net(const std::string& mean = "global_average_pool(%y)", const std::string& image = "10,9",
                const std::string& result = "%z") {
  return "graph (%x: f32[2,24," + image + R"(]) {
    %w = const rand<1> : f32[24,1,3,3]
    %v = const rand<2> : f32[24,24,1,1]
    %axes = const dense<2, 3> : i64[2]
    %d = conv(%x, %w) {group = 24, pads = [1,1,1,1]}
    %y = silu(%d)
    %m = )" +
         mean + R"(
    %f = conv(%m, %v)
    %s = sigmoid(%f)
    %z = mul(%y, %s)
    return )" +
         result + " }";
}

Graph fused(const std::string& text) {
  const Graph graph = prepared_text(text);
  return apply(graph, make_plan(graph));
}

ShapeContext into(int64_t bands) {
  return {.bands = [bands](const Node&) { return bands; }};
}

const Node& joined_of(const Graph& graph) {
  for (const Node* node : graph.nodes())
    if (node->outputs.size() == 2) return *node;
  ADD_FAILURE() << print(graph);
  return *graph.nodes().front();
}

TEST(Means, OfOneBandAreTheSecondResultOfTheMapsGroup) {
  Graph graph = fused(net());
  const Graph before = graph.clone();
  const std::vector<ShapeVerdict> verdicts = join_means()(graph, into(1));
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_FALSE(verdicts[0].refused);
  EXPECT_EQ(kind_of(verdicts[0]), "means");
  EXPECT_EQ(verdicts[0].number("bytes"), 2 * 24 * 10 * 9 * 4);
  ASSERT_NO_THROW(verify(graph));
  EXPECT_EQ(graph.nodes().size(), before.nodes().size() - 1) << print(graph);
  const Node& joined = joined_of(graph);
  EXPECT_EQ(joined.label, verdicts[0].nodes[0] + "+" + verdicts[0].nodes[1]);
  EXPECT_EQ(joined.pattern, "ConvBNReLU+AdaptiveAvgPool");
  testing::expect_same_values(before, graph, {.tolerance = 1e-12});
}

TEST(Means, OfSeveralBandsAreAveragedByTheModuleThatReadTheMap) {
  Graph graph = fused(net());
  const Graph before = graph.clone();
  const std::vector<ShapeVerdict> verdicts = join_means()(graph, into(5));
  ASSERT_EQ(verdicts.size(), 1u);
  ASSERT_NO_THROW(verify(graph));
  EXPECT_EQ(graph.nodes().size(), before.nodes().size()) << print(graph);
  EXPECT_EQ(joined_of(graph).outputs[1]->type.shape, Shape({Dim(2), Dim(24), Dim(5), Dim(1)}));
  EXPECT_TRUE(std::any_of(graph.nodes().begin(), graph.nodes().end(),
                          [&](const Node* node) { return node->label == verdicts[0].nodes[1]; }));
  testing::expect_same_values(before, graph, {.tolerance = 1e-12});
}

TEST(Means, InEverySpellingThatKeepsTheAxes) {
  for (const char* mean : {"reduce_mean(%y, %axes)", "average_pool(%y) {kernel_shape = [10,9]}"}) {
    Graph graph = fused(net(mean));
    const Graph before = graph.clone();
    const std::vector<ShapeVerdict> verdicts = join_means()(graph, into(2));
    ASSERT_EQ(verdicts.size(), 1u) << mean;
    EXPECT_FALSE(verdicts[0].refused) << mean;
    testing::expect_same_values(before, graph, {.tolerance = 1e-12});
  }
}

std::vector<ShapeVerdict> expect_spared(Graph graph, const ShapeContext& context = into(2)) {
  const Graph before = graph.clone();
  std::vector<ShapeVerdict> verdicts = join_means()(graph, context);
  EXPECT_TRUE(equal(before, graph));
  return verdicts;
}

TEST(Means, SpareImagesOfUnknownSize) {
  const auto verdicts = expect_spared(fused(net("global_average_pool(%y)", "h,w")));
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].refused->code, "symbolic");
}

TEST(Means, SpareWhatTheAdviceRefuses) {
  ShapeContext context = into(2);
  context.legal = [](const Node&) { return Decline{"not_generated", "no kernel", {}}; };
  const auto verdicts = expect_spared(fused(net()), context);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].refused->message, "no kernel");
}

TEST(Means, SpareAGroupThatGoesOnBehindTheMean) {
  std::string text = net();
  text.replace(text.find("conv(%m, %v)"), 12, "exp(%m)");
  const auto verdicts = expect_spared(fused(text));
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].refused->code, "epilogue");
}

TEST(Means, OfOneMapTwiceAreSummedOnce) {
  std::string text = net();
  text.replace(text.find("mul(%y, %s)"), 11, "mul(%y, %s) %o = reduce_mean(%y, %axes)");
  text.replace(text.find("return %z"), 9, "return %z, %o");
  Graph graph = fused(text);
  const Graph before = graph.clone();
  EXPECT_EQ(join_means()(graph, into(1)).size(), 1u);
  ASSERT_NO_THROW(verify(graph));
  testing::expect_same_values(before, graph, {.tolerance = 1e-12});
}

TEST(Means, SpareAMaximum) { EXPECT_TRUE(expect_spared(fused(net("global_max_pool(%y)"))).empty()); }

TEST(Means, SpareAConvolutionThatMixesChannels) {
  std::string text = net();
  text.replace(text.find("f32[24,1,3,3]"), 13, "f32[24,2,3,3]");
  text.replace(text.find("group = 24"), 10, "group = 12");
  EXPECT_TRUE(expect_spared(fused(text)).empty());
}

}  // namespace
}  // namespace opfuse
