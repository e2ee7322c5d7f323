// Borders in front of convolutions: where the convolution takes them over, where they stay and why.
#include <gtest/gtest.h>

#include "passes/passes.hpp"
#include "testing/corners.hpp"
#include "testing/rewrite.hpp"

namespace opfuse {
namespace {

/// %b of %x [1,2,6,6] or, with `channels_last`, of [1,6,6,2] and transposed behind the border.
std::string bordered(const std::string& pads, const std::string& conv, const std::string& value = "0",
                     bool channels_last = false) {
  return std::string("graph (%x: f32[") + (channels_last ? "1,6,6,2" : "1,2,6,6") + "]) { %p = const dense<" + pads +
         "> : i64[8] %v = const splat<" + value + "> : f32[] %w = const rand<1> : f32[4,2,3,3] %b = pad(%x, %p, %v) " +
         (channels_last ? "%t = transpose(%b) {perm = [0,3,1,2]} " : "") + "%y = conv(" +
         (channels_last ? "%t" : "%b") + ", %w) {kernel_shape = [3,3]" + conv + "} return %y }";
}

/// The code of the refusal; "" when it was rewritten, and then the values are compared.
std::string code_of(const std::string& text) {
  const Graph before = parse_graph(text, ops());
  Graph graph = before.clone();
  RewriteReport report;
  if (!pad_into_conv()(graph, &report)) return report.notes.empty() ? "nothing" : report.notes.at(0).reason.code;
  verify(graph);
  EXPECT_EQ(graph.outputs()[0]->name, before.outputs()[0]->name);
  EXPECT_EQ(graph.outputs()[0]->type, before.outputs()[0]->type);
  for (const Node* node : graph.nodes()) EXPECT_FALSE(node->is("pad")) << print(graph);
  testing::expect_same_on_corners(before, graph);
  return "";
}

constexpr const char* kOne = "0,0,1,1,0,0,1,1";

TEST(PadIntoConv, TakesABorderOfZeros) {
  testing::expect_rewrite(
      [](Graph& graph) {
        EXPECT_TRUE(pad_into_conv()(graph));
        graph.remove_dead_nodes();
      },
      bordered("0,0,0,1,0,0,2,1", ", strides = [2,2]"),
      "graph (%x: f32[1,2,6,6]) { %w = const rand<1> : f32[4,2,3,3] %y = conv(%x, %w) {kernel_shape = [3,3], strides = "
      "[2,2], pads = [0,1,2,1]} return %y }");
}

TEST(PadIntoConv, AddsToTheConvolutionsOwnPads) {
  EXPECT_EQ(code_of(bordered(kOne, ", pads = [1,0,1,1]")), "");
  EXPECT_EQ(code_of(bordered(kOne, ", auto_pad = \"VALID\"")), "");
  EXPECT_EQ(code_of(bordered(kOne, ", dilations = [2,2]")), "");
}

TEST(PadIntoConv, LooksThroughATransposition) {
  EXPECT_EQ(code_of(bordered("0,0,1,0,0,1,2,0", ", strides = [2,2]", "0", true)), "");
  EXPECT_EQ(code_of(bordered("1,0,0,0,0,0,0,0", "", "0", true)), "axes");
}

TEST(PadIntoConv, StaysAndSaysWhy) {
  EXPECT_EQ(code_of(bordered(kOne, "", "1")), "constant_mismatch");
  EXPECT_EQ(code_of(bordered("0,0,-1,1,0,0,1,1", "")), "cuts");
  EXPECT_EQ(code_of(bordered("1,0,1,1,0,0,1,1", "")), "axes");
  EXPECT_EQ(code_of(bordered(kOne, ", auto_pad = \"SAME_UPPER\"")), "conv_attributes");
  const std::string text = bordered(kOne, "");
  EXPECT_EQ(code_of(text.substr(0, text.rfind("return")) + "%z = exp(%b) return %y, %z }"), "multi_consumer");
  EXPECT_EQ(code_of("graph (%x: f32[1,2,6,6]) { %p = const dense<0,0,1,1,0,0,1,1> : i64[8] %w = const rand<1> : "
                    "f32[4,2,3,3] %b = pad(%x, %p) {mode = \"edge\"} %y = conv(%b, %w) return %y }"),
            "mode");
}

}  // namespace
}  // namespace opfuse
