// Borders in front of max pools: where the pool takes them over, where they stay and why; values on corner inputs too.
#include <gtest/gtest.h>

#include "passes/passes.hpp"
#include "testing/corners.hpp"
#include "testing/rewrite.hpp"

namespace opfuse {
namespace {

std::string bordered(const std::string& before, const std::string& pads, const std::string& pool,
                     const std::string& value = "0") {
  return "graph (%x: f32[1,2,6,6]) { %p = const dense<" + pads + "> : i64[8] %v = const splat<" + value + "> : f32[] " +
         before + " %b = pad(%a, %p, %v) %y = max_pool(%b) {" + pool + "} return %y }";
}

/// The code of the refusal; "" when it was rewritten, and then the values are compared.
std::string code_of(const std::string& text) {
  const Graph before = parse_graph(text, ops());
  Graph graph = before.clone();
  RewriteReport report;
  if (!pad_into_max_pool()(graph, &report)) return report.notes.empty() ? "nothing" : report.notes.at(0).reason.code;
  verify(graph);
  EXPECT_EQ(graph.outputs()[0]->name, before.outputs()[0]->name);
  EXPECT_EQ(graph.outputs()[0]->type, before.outputs()[0]->type);
  testing::expect_same_on_corners(before, graph);
  return "";
}

constexpr const char* kRelu = "%a = relu(%x)";
constexpr const char* kOne = "0,0,1,1,0,0,1,1";
constexpr const char* kPool = "kernel_shape = [3,3], strides = [2,2]";

TEST(PadIntoMaxPool, TakesABorderOfZerosAroundAnActivation) {
  testing::expect_rewrite(
      [](Graph& graph) {
        EXPECT_TRUE(pad_into_max_pool()(graph));
        graph.remove_dead_nodes();
      },
      bordered(kRelu, kOne, kPool),
      "graph (%x: f32[1,2,6,6]) { %a = relu(%x) %y = max_pool(%a) {kernel_shape = [3,3], strides = [2,2], pads = "
      "[1,1,1,1]} return %y }");
  for (const char* before : {"%a = sigmoid(%x)", "%l = const splat<0.0> : f32[] %a = clip(%x, %l)"})
    EXPECT_EQ(code_of(bordered(before, kOne, kPool)), "") << before;
  EXPECT_EQ(code_of(bordered(kRelu, "0,0,0,1,0,0,2,1", kPool)), "");
}

TEST(PadIntoMaxPool, AddsToThePoolsOwnPads) {
  EXPECT_EQ(code_of(bordered(kRelu, kOne, "kernel_shape = [3,3], pads = [1,0,1,1]")), "");
  EXPECT_EQ(code_of(bordered(kRelu, kOne, "kernel_shape = [3,3], pads = [2,0,1,1]")), "empty_window");
}

TEST(PadIntoMaxPool, MinusInfinityMovesAnywhere) {
  EXPECT_EQ(code_of(bordered("%a = tanh(%x)", kOne, kPool, "-inf")), "");
}

TEST(PadIntoMaxPool, StaysAndSaysWhy) {
  EXPECT_EQ(code_of(bordered("%a = tanh(%x)", kOne, kPool)), "may_be_negative");
  EXPECT_EQ(code_of(bordered("%l = const splat<-1.0> : f32[] %a = clip(%x, %l)", kOne, kPool)), "may_be_negative");
  EXPECT_EQ(code_of(bordered(kRelu, kOne, kPool, "1")), "constant_mismatch");
  EXPECT_EQ(code_of(bordered(kRelu, "0,0,3,1,0,0,1,1", kPool)), "empty_window");
  EXPECT_EQ(code_of(bordered(kRelu, "0,1,1,1,0,0,1,1", kPool)), "axes");
  EXPECT_EQ(code_of(bordered(kRelu, "0,0,1,1,0,0,-1,1", kPool)), "cuts");
  EXPECT_EQ(code_of(bordered(kRelu, kOne, "kernel_shape = [3,3], ceil_mode = true")), "pool_attributes");
  EXPECT_EQ(code_of(bordered(kRelu, kOne, "kernel_shape = [2,2], dilations = [2,2]")), "pool_attributes");
}

TEST(PadIntoMaxPool, LeavesAMapThatOthersRead) {
  const std::string text = bordered(kRelu, kOne, kPool);
  EXPECT_EQ(code_of(text.substr(0, text.rfind("return")) + "%z = exp(%b) return %y, %z }"), "multi_consumer");
}

}  // namespace
}  // namespace opfuse
