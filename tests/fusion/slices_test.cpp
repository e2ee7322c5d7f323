// Pairs of groups slice by slice: where that lowers the peak, and the same values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fusion/explain/shaping_text.hpp"
#include "fusion/prepared.hpp"
#include "region/unroll_parts.hpp"
#include "shape/live_bytes.hpp"
#include "shape/shaping_passes.hpp"
#include "testing/rewrite.hpp"

namespace opfuse {
namespace {

using ::testing::HasSubstr;

/// 8 -> 64 channels, depthwise with stride 2, on maps of 2048 elements per channel; `more` follows.
std::string net(const std::string& more = "", const std::string& result = "%y", const std::string& batch = "1") {
  return "graph (%x: f32[" + batch + R"(,8,64,64]) {
    %w1 = const rand<1> : f32[64,8,1,1]
    %b1 = const rand<2> : f32[64]
    %w2 = const rand<3> : f32[64,1,3,3]
    %g = const rand<4> : f32[64]
    %v = const splat<0.7> : f32[64]
    %a = conv(%x, %w1, %b1)
    %r = relu(%a)
    %d = conv(%r, %w2) {group = 64, pads = [1,1,1,1], strides = [2,2]}
    %n = batch_norm(%d, %g, %b1, %g, %v)
    %y = relu(%n)
    )" + more +
         " return " + result + " }";
}

Graph fused(const std::string& text) {
  const Graph graph = prepared_text(text);
  return apply(graph, make_plan(graph));
}

int count(const Graph& graph, std::string_view op) {
  return static_cast<int>(
      std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const Node* node) { return node->is(op); }));
}

TEST(Slices, APairThatHoldsMostMemoryRunsSliceBySlice) {
  Graph graph = fused(net());
  const Graph before = graph.clone();
  const std::vector<std::string> notes = shaping_lines(run_in_slices()(graph, {.channel_block = 16}));
  ASSERT_EQ(notes.size(), 1u) << print(graph);
  EXPECT_THAT(notes[0], HasSubstr("2 slices of 32 channels"));
  ASSERT_NO_THROW(verify(graph));
  ASSERT_EQ(count(graph, "for_parts"), 1);
  EXPECT_EQ(count(*graph.nodes()[0]->body, "fused"), 2);
  EXPECT_EQ(graph.outputs()[0]->name, before.outputs()[0]->name);
  const auto peak = [](const Graph& g) {
    Graph copy = g.clone();
    int64_t most = 0;
    for (const LiveBytes& live : live_bytes(copy)) most = std::max(most, live.bytes);
    return most;
  };
  EXPECT_EQ(peak(before), 64 * 64 * 64 * 4);
  EXPECT_LT(peak(graph), peak(before) * 0.85);
  testing::expect_same_values(before, graph, {.tolerance = 0});
  unroll_parts(graph);
  ASSERT_NO_THROW(verify(graph));
  EXPECT_EQ(count(graph, "fused"), 4);
  EXPECT_EQ(count(graph, "concat"), 1);
  EXPECT_LT(peak(graph), peak(before) * 0.85);
  testing::expect_same_values(before, graph, {.tolerance = 0});
}

/// Codes, a group that convolves what it dequantises to codes of the same type, and what reads those.
std::string codes(int channels) {
  const std::string c = std::to_string(channels);
  return "graph (%x: f32[1," + c + R"(,8,8]) {
    %s = const splat<0.01> : f32[]
    %z = const splat<3> : u8[]
    %w = const rand<1> : f32[)" +
         c + R"(,1,3,3]
    %q = quantize_linear(%x, %s, %z)
    %r = fused "ConvBN" as "g" (%q, %s, %z, %w) {
      %d = dequantize_linear(%q, %s, %z)
      %c = conv(%d, %w) {group = )" +
         c + R"(, pads = [1,1,1,1]}
      %p = quantize_linear(%c, %s, %z)
      yield %p
    }
    %y = dequantize_linear(%r, %s, %z)
    return %y })";
}

int64_t peak_of_codes(int channels, int64_t block) {
  Graph graph = parse_graph(codes(channels), ops());
  int64_t most = 0;
  for (const LiveBytes& live : live_bytes(graph, block)) most = std::max(most, live.bytes);
  return most;
}

TEST(Slices, CodesAreNotStoredWhereAConvolutionStillReads) { EXPECT_EQ(peak_of_codes(16, 8), 2 * 16 * 64); }

TEST(Slices, CodesOfImagesFillTheirBlocks) {
  EXPECT_EQ(peak_of_codes(9, 8), 2 * 16 * 64);
  EXPECT_EQ(peak_of_codes(3, 8), 2 * 4 * 64);
}

TEST(Slices, EverySliceKeepsTheNodesItStemsFrom) {
  Graph graph = fused(net());
  const std::vector<Source> sources = graph.nodes()[0]->sources;
  run_in_slices()(graph, {.channel_block = 16});
  unroll_parts(graph);
  EXPECT_EQ(graph.nodes()[0]->sources, sources);
  EXPECT_EQ(graph.nodes()[2]->sources, sources);
  EXPECT_THAT(graph.nodes()[2]->label, HasSubstr("[32:64]"));
}

void expect_spared(Graph graph, int64_t block = 16) {
  const Graph before = graph.clone();
  EXPECT_TRUE(run_in_slices()(graph, {.channel_block = block}).empty());
  EXPECT_TRUE(equal(before, graph));
}

TEST(Slices, SpareWhatIsReadTwice) {
  expect_spared(fused(net("%s = global_average_pool(%r) %t = global_average_pool(%y) %z = add(%s, %t)", "%z")));
}

TEST(Slices, SpareAPairWhoseSlicesWouldBeSmall) { expect_spared(fused(net()), 64); }

TEST(Slices, SpareOpenDimensions) { expect_spared(fused(net("", "%y", "n"))); }

TEST(Slices, SpareUnfusedNodes) { expect_spared(prepared_text(net())); }

TEST(Slices, SpareAConvolutionThatMixesChannels) {
  std::string text = net();
  text.replace(text.find("f32[64,1,3,3]"), 13, "f32[64,2,3,3]");
  text.replace(text.find("group = 64"), 10, "group = 32");
  expect_spared(fused(text));
}

TEST(Slices, SpareAPairBesideAGreaterPeak) {
  expect_spared(
      fused(net("%w3 = const rand<5> : f32[1024,64,1,1] %u = conv(%y, %w3) %z = global_average_pool(%u)", "%z")));
}

}  // namespace
}  // namespace opfuse
