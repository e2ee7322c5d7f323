// Factors of channels: which products join the convolution that reads them, and which stay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fusion/explain/shaping_text.hpp"
#include "fusion/prepared.hpp"
#include "shape/shaping_passes.hpp"
#include "testing/rewrite.hpp"

namespace opfuse {
namespace {

/// A map, gated by `product` from its means, and a projection that reads it.
std::string net(const std::string& product = "mul(%t, %g)", const std::string& projection = "conv(%q, %w2)",
                const std::string& result = "%y") {
  return R"(graph (%t: f32[2,24,10,9]) {
    %w1 = const rand<1> : f32[24,24,1,1]
    %w2 = const rand<2> : f32[8,24,1,1]
    %w3 = const rand<3> : f32[8,24,3,3]
    %b = const rand<4> : f32[8]
    %m = global_average_pool(%t)
    %f = conv(%m, %w1)
    %g = sigmoid(%f)
    %q = )" +
         product + R"(
    %p = )" +
         projection + R"(
    %y = relu(%p)
    return )" +
         result + " }";
}

Graph fused(const std::string& text) {
  const Graph graph = prepared_text(text);
  return apply(graph, make_plan(graph));
}

TEST(ChannelFactors, JoinTheProjectionThatAloneReadsTheProduct) {
  for (const char* product : {"mul(%t, %g)", "mul(%g, %t)"}) {
    Graph graph = fused(net(product));
    const Graph before = graph.clone();
    const std::vector<ShapeVerdict> verdicts = join_channel_factors()(graph);
    ASSERT_EQ(verdicts.size(), 1u);
    EXPECT_FALSE(verdicts[0].refused);
    EXPECT_EQ(kind_of(verdicts[0]), "factor");
    ASSERT_NO_THROW(verify(graph));
    EXPECT_EQ(graph.nodes().size(), before.nodes().size() - 1) << print(graph);
    const Node& joined = *graph.nodes().back();
    EXPECT_EQ(joined.label, "mul+" + verdicts[0].nodes[1]);
    for (const Node* node : joined.body->nodes()) EXPECT_FALSE(node->is("fused"));
    testing::expect_same_values(before, graph, {.tolerance = 0});
  }
}

std::vector<ShapeVerdict> expect_spared(Graph graph, const ShapeContext& context = {}) {
  const Graph before = graph.clone();
  std::vector<ShapeVerdict> verdicts = join_channel_factors()(graph, context);
  EXPECT_TRUE(equal(before, graph));
  return verdicts;
}

TEST(ChannelFactors, SpareWhatIsReadElsewhere) {
  const auto verdicts = expect_spared(fused(net("mul(%t, %g)", "conv(%q, %w2) %u = global_max_pool(%q)", "%y, %u")));
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].refused->code, "multi_consumer");
}

TEST(ChannelFactors, SpareWhatIsAnOutput) {
  const auto verdicts = expect_spared(fused(net("mul(%t, %g)", "conv(%q, %w2)", "%y, %q")));
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].refused->code, "graph_output");
}

TEST(ChannelFactors, SpareWhatTheAdviceRefuses) {
  const auto verdicts = expect_spared(fused(net()), {.gains = {{"join-channel-factors", [](const Node&) {
                                                                  return Decline{"no_gain", "it is slower", {}};
                                                                }}}});
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].refused->message, "it is slower");
}

TEST(ChannelFactors, SpareAConvolutionWithTaps) {
  EXPECT_TRUE(expect_spared(fused(net("mul(%t, %g)", "conv(%q, %w3) {pads = [1,1,1,1]}"))).empty());
}

TEST(ChannelFactors, SpareAProductOfTwoMaps) { EXPECT_TRUE(expect_spared(fused(net("mul(%t, %t)"))).empty()); }

TEST(ChannelFactors, SpareASum) { EXPECT_TRUE(expect_spared(fused(net("add(%t, %g)"))).empty()); }

}  // namespace
}  // namespace opfuse
