// Chains and gates: which pairs are joined, what reports say, and which stay apart. Values are compared each time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fusion/explain/shaping_text.hpp"
#include "fusion/prepared.hpp"
#include "shape/shaping_passes.hpp"
#include "testing/rewrite.hpp"

namespace opfuse {
namespace {

using ::testing::HasSubstr;

/// 8 -> 24 channels, depthwise with stride 2; `more` follows.
std::string net(const std::string& more = "", const std::string& result = "%y") {
  return R"(graph (%x: f32[1,8,9,9]) {
    %w1 = const rand<1> : f32[24,8,1,1]
    %b1 = const rand<2> : f32[24]
    %w2 = const rand<3> : f32[24,1,3,3]
    %g = const rand<4> : f32[24]
    %v = const splat<0.7> : f32[24]
    %a = conv(%x, %w1, %b1)
    %r = relu(%a)
    %d = conv(%r, %w2) {group = 24, pads = [1,1,1,1], strides = [2,2]}
    %n = batch_norm(%d, %g, %b1, %g, %v)
    %y = silu(%n)
    )" + more +
         " return " + result + " }";
}

Graph fused(const std::string& text) {
  const Graph graph = prepared_text(text);
  return apply(graph, make_plan(graph));
}

TEST(Chains, AConvolutionAndTheDepthwiseOneThatReadsItBecomeOneNode) {
  Graph graph = fused(net());
  const Graph before = graph.clone();
  ASSERT_EQ(graph.nodes().size(), 2u) << print(graph);
  std::vector<Source> sources = graph.nodes()[0]->sources;
  for (const Source& s : graph.nodes()[1]->sources) sources.push_back(s);
  const std::vector<std::string> labels = {graph.nodes()[0]->label, graph.nodes()[1]->label};
  const std::vector<ShapeVerdict> verdicts = join_chains()(graph);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_FALSE(verdicts[0].refused);
  EXPECT_EQ(verdicts[0].number("bytes"), 24 * 9 * 9 * 4);
  ASSERT_NO_THROW(verify(graph));
  ASSERT_EQ(graph.nodes().size(), 1u) << print(graph);
  const Node& chain = *graph.nodes()[0];
  EXPECT_EQ(chain.label, labels[0] + "+" + labels[1]);
  EXPECT_EQ(chain.pattern, "ConvBNReLU+ConvBNReLU");
  EXPECT_EQ(chain.sources.size(), sources.size());
  for (const Node* node : chain.body->nodes()) EXPECT_FALSE(node->is("fused"));
  testing::expect_same_values(before, graph, {.tolerance = 0});
}

TEST(Chains, AllOfANetworkAreJoined) {
  Graph graph = fused(net(R"(%w3 = const rand<5> : f32[24,24,1,1] %e = conv(%y, %w3) %f = relu(%e)
    %h = conv(%f, %w2) {group = 24, pads = [1,1,1,1]})",
                          "%h"));
  const Graph before = graph.clone();
  const std::vector<ShapeVerdict> verdicts = join_chains()(graph);
  EXPECT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(graph.nodes().size(), 2u) << print(graph);
  EXPECT_THAT(shaping_lines(verdicts).at(0), HasSubstr("2 of 2 pairs"));
  testing::expect_same_values(before, graph, {.tolerance = 0});
}

std::vector<ShapeVerdict> expect_spared(const ShapingPass& pass, Graph graph, const ShapeContext& context = {}) {
  const Graph before = graph.clone();
  std::vector<ShapeVerdict> verdicts = pass(graph, context);
  EXPECT_TRUE(equal(before, graph));
  EXPECT_EQ(shaping_lines(verdicts), std::vector<std::string>{});
  return verdicts;
}

TEST(Chains, SpareWhatIsReadElsewhere) {
  const auto verdicts = expect_spared(
      join_chains(), fused(net("%s = global_average_pool(%r) %t = global_average_pool(%y) %z = add(%s, %t)", "%z")));
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].refused->code, "multi_consumer");
}

TEST(Chains, SpareWhatIsAnOutput) {
  const auto verdicts = expect_spared(join_chains(), fused(net("", "%y, %r")));
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].refused->code, "graph_output");
}

TEST(Chains, SpareWhatTheAdviceRefuses) {
  const auto verdicts =
      expect_spared(join_chains(), fused(net()), {.gains = {{"join-chains", [](const Node&) {
                                                               return Decline{"no_gain", "it is slower", {}};
                                                             }}}});
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].refused->message, "it is slower");
  EXPECT_NE(verdicts[0].nodes[0], verdicts[0].nodes[1]);
}

TEST(Chains, SpareAConvolutionThatMixesChannels) {
  std::string text = net();
  text.replace(text.find("f32[24,1,3,3]"), 13, "f32[24,2,3,3]");
  text.replace(text.find("group = 24"), 10, "group = 12");
  EXPECT_TRUE(expect_spared(join_chains(), fused(text)).empty());
}

TEST(Chains, SpareTwoDepthwiseConvolutions) {
  std::string text = net("%h = conv(%y, %w2) {group = 24, pads = [1,1,1,1]}", "%h");
  Graph graph = fused(text);
  EXPECT_EQ(join_chains()(graph).size(), 1u);
  EXPECT_EQ(graph.nodes().size(), 2u);
}

/// silu(x A) * (x B) and what follows.
std::string gated(const std::string& more = "", const std::string& result = "%y", const std::string& of = "%x") {
  return R"(graph (%x: f32[2,5,8], %z: f32[2,5,8]) {
    %a = const rand<1> : f32[8,12]
    %b = const rand<2> : f32[8,12]
    %c = const rand<3> : f32[12]
    %g = matmul(%x, %a)
    %s = silu(%g)
    %u = matmul()" +
         of + R"(, %b)
    %v = add(%u, %c)
    %y = mul(%s, %v)
    )" + more +
         " return " + result + " }";
}

TEST(Gates, TheTwoProductsOfAGatedMlpBecomeOneNode) {
  Graph graph = fused(gated());
  const Graph before = graph.clone();
  ASSERT_EQ(graph.nodes().size(), 2u) << print(graph);
  const std::vector<ShapeVerdict> verdicts = join_gates()(graph);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_FALSE(verdicts[0].refused);
  EXPECT_EQ(verdicts[0].pass, "join-gates");
  EXPECT_EQ(verdicts[0].value, "s");
  EXPECT_EQ(verdicts[0].number("bytes"), 2 * 5 * 12 * 4);
  ASSERT_NO_THROW(verify(graph));
  ASSERT_EQ(graph.nodes().size(), 1u) << print(graph);
  EXPECT_EQ(graph.nodes()[0]->pattern, "LinearReLU+Linear");
  EXPECT_THAT(shaping_lines(verdicts).at(0), HasSubstr("1 of 1 gated MLPs"));
  testing::expect_same_values(before, graph, {.tolerance = 0});
}

TEST(Gates, WhatFollowsThemStaysInTheirEpilogue) {
  Graph graph = fused(gated("%t = tanh(%y)", "%t"));
  const Graph before = graph.clone();
  EXPECT_EQ(join_gates()(graph).size(), 1u);
  EXPECT_EQ(graph.nodes().size(), 1u) << print(graph);
  testing::expect_same_values(before, graph, {.tolerance = 0});
}

TEST(Gates, ThreeProductsAreOnePairAndOneLinear) {
  Graph graph = fused(gated("%d = const rand<4> : f32[8,12] %m = matmul(%x, %d) %w = mul(%m, %y)", "%w"));
  const Graph before = graph.clone();
  EXPECT_EQ(join_gates()(graph).size(), 1u);
  EXPECT_EQ(graph.nodes().size(), 2u) << print(graph);
  testing::expect_same_values(before, graph, {.tolerance = 0});
}

TEST(Gates, SpareLinearsOfDifferentValues) {
  EXPECT_TRUE(expect_spared(join_gates(), fused(gated("", "%y", "%z"))).empty());
}

TEST(Gates, SpareAGateThatIsReadElsewhere) {
  const auto verdicts = expect_spared(join_gates(), fused(gated("%e = exp(%s)", "%y, %e")));
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].refused->code, "multi_consumer");
}

TEST(Gates, SpareLinearsThatAreNotCombined) {
  EXPECT_TRUE(
      expect_spared(join_gates(),
                    fused(R"(graph (%x: f32[5,8]) { %a = const rand<1> : f32[8,12] %b = const rand<2> : f32[8,12]
    %g = matmul(%x, %a) %s = silu(%g) %u = matmul(%x, %b) %t = tanh(%u) return %s, %t })"))
          .empty());
}

TEST(Gates, SpareComputedWeights) {
  EXPECT_TRUE(expect_spared(join_gates(), fused(R"(graph (%x: f32[5,8], %a: f32[8,12]) { %b = const rand<2> : f32[8,12]
    %g = matmul(%x, %a) %s = silu(%g) %u = matmul(%x, %b) %y = mul(%s, %u) return %y })"))
                  .empty());
}

}  // namespace
}  // namespace opfuse
