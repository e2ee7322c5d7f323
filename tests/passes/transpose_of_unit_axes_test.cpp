// Transposes that move nothing in memory: where they become reshapes, where they stay, and that values stay equal.
#include <gtest/gtest.h>

#include "passes/passes.hpp"
#include "testing/rewrite.hpp"

namespace opfuse {
namespace {

const testing::Rewrite kReshaped = [](Graph& graph) {
  run_passes(graph, {transpose_of_unit_axes()});
  run_passes(graph, cleaning_passes());
};

std::string transposed(const std::string& shape, const std::string& perm) {
  return "graph (%x: f32[" + shape + "]) { %y = transpose(%x) {perm = [" + perm + "]} return %y }";
}

TEST(TransposeOfUnitAxes, OneSequenceThatLeavesItsBatch) {
  testing::expect_rewrite(kReshaped, transposed("1,7,5", "1,0,2"),
                          "graph (%x: f32[1,7,5]) { %d = const dense<7,1,5> : i64[3] %y = reshape(%x, %d) return %y }");
}

TEST(TransposeOfUnitAxes, SeveralUnitAxesAroundThoseThatKeepTheirOrder) {
  testing::expect_rewrite(
      kReshaped, transposed("1,3,1,4,1", "1,4,3,0,2"),
      "graph (%x: f32[1,3,1,4,1]) { %d = const dense<3,1,4,1,1> : i64[5] %y = reshape(%x, %d) return %y }");
}

TEST(TransposeOfUnitAxes, AnOpenLengthIsTheRestOfTheElements) {
  Graph graph = parse_graph(transposed("1,t,5", "1,0,2"), ops());
  const Graph before = graph.clone();
  EXPECT_TRUE(transpose_of_unit_axes()(graph));
  verify(graph);
  EXPECT_TRUE(graph.nodes().at(0)->is("reshape"));
  testing::expect_same_values(before, graph, {.tolerance = 0, .symbols = {{"t", 6}}});
}

TEST(TransposeOfUnitAxes, WithItTwoThatCancelAreGone) {
  testing::expect_rewrite(kReshaped,
                          R"(graph (%x: f32[1,7,5]) { %t = transpose(%x) {perm = [1,0,2]}
 %dims = const dense<1,7,5> : i64[3] %y = reshape(%t, %dims) %z = add(%y, %x) return %z })",
                          "graph (%x: f32[1,7,5]) { %z = add(%x, %x) return %z }");
}

std::string behind_a_linear(const std::string& more, const std::string& perm = "1,0,2") {
  return "graph (%x: f32[7,1,5], %r: f32[1,7,4]) { %w = const rand<1> : f32[5,4] %b = const rand<2> : f32[4] "
         "%m = matmul(%x, %w) %s = add(%m, %b) %t = transpose(%s) {perm = [" +
         perm + "]} %y = add(%t, %r) " + more + " }";
}

TEST(TransposeOfUnitAxes, ComesBeforeTheLinearWhoseRowsItMoves) {
  testing::expect_rewrite(kReshaped, behind_a_linear("return %y"),
                          R"(graph (%x: f32[7,1,5], %r: f32[1,7,4]) { %w = const rand<1> : f32[5,4]
 %b = const rand<2> : f32[4] %d = const dense<1,7,5> : i64[3] %h = reshape(%x, %d)
 %m = matmul(%h, %w) %s = add(%m, %b) %y = add(%s, %r) return %y })");
}

TEST(TransposeOfUnitAxes, StaysBehindALinearThatOthersRead) {
  for (const char* other : {"%z = relu(%s) return %y, %z", "%z = relu(%m) return %y, %z"}) {
    Graph graph = parse_graph(behind_a_linear(other), ops());
    const Graph before = graph.clone();
    kReshaped(graph);
    EXPECT_TRUE(graph.find_value("s")->producer->is("add")) << print(graph);
    testing::expect_same_values(before, graph, {.tolerance = 0});
  }
}

TEST(TransposeOfUnitAxes, StaysBehindALinearWhoseFeaturesItMoves) {
  Graph graph = parse_graph(R"(graph (%x: f32[7,1,5]) { %w = const rand<1> : f32[5,4] %m = matmul(%x, %w)
 %y = transpose(%m) {perm = [0,2,1]} return %y })",
                            ops());
  const Graph before = graph.clone();
  kReshaped(graph);
  EXPECT_TRUE(graph.nodes().back()->is("reshape")) << print(graph);
  testing::expect_same_values(before, graph, {.tolerance = 0});
}

void expect_spared(const std::string& text) {
  testing::expect_unchanged([](Graph& g) { transpose_of_unit_axes()(g); }, text);
}

TEST(TransposeOfUnitAxes, SparesWhatMoves) {
  expect_spared(transposed("2,7,5", "1,0,2"));
  expect_spared(transposed("1,7,5", "0,2,1"));
  expect_spared(transposed("n,7,5", "1,0,2"));
}

TEST(TransposeOfUnitAxes, SparesTwoOpenDimensions) { expect_spared(transposed("1,s,t", "1,0,2")); }

TEST(TransposeOfUnitAxes, SparesEmptyTensors) { expect_spared(transposed("1,0,5", "1,0,2")); }

TEST(TransposeOfUnitAxes, SparesTheChannelsOfImages) {  // the kernel that stores the image stores it so
  expect_spared(transposed("1,8,1,1", "0,2,3,1"));
  expect_spared(transposed("1,1,1,8", "0,3,1,2"));
}

TEST(TransposeOfUnitAxes, IsReported) {
  Graph graph = parse_graph(transposed("1,7,5", "1,0,2"), ops());
  RewriteReport report;
  EXPECT_TRUE(transpose_of_unit_axes()(graph, &report));
  EXPECT_EQ(report.count("TransposeOfUnitAxes", true), 1u);
  EXPECT_FALSE(transpose_of_unit_axes()(graph, &report));
}

}  // namespace
}  // namespace opfuse
