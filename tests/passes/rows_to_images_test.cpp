// Tokens that become images and back: where the reshape goes, where both stay, and that values stay equal.
#include <gtest/gtest.h>

#include "passes/passes.hpp"
#include "testing/rewrite.hpp"

namespace opfuse {
namespace {

const testing::Rewrite kTurned = [](Graph& graph) {
  run_passes(graph, {rows_to_images()});
  run_passes(graph, cleaning_passes());
};

std::string into_image(const std::string& rows, const std::string& perm = "0,2,1",
                       const std::string& image = "2,6,3,4") {
  return "graph (%x: f32[2,12,5]) { %w = const rand<1> : f32[5,6] %b = const rand<2> : f32[6] %v = const rand<3> : "
         "f32[6]\n" +
         rows + " %t = transpose(%r) {perm = [" + perm + "]} %d = const dense<" + image +
         "> : i64[4] %i = reshape(%t, %d) %y = relu(%i) return %y }";
}

TEST(RowsToImages, TheReshapeComesBeforeTheLinear) {
  testing::expect_rewrite(kTurned, into_image("%m = matmul(%x, %w) %r = add(%b, %m)"),
                          R"(graph (%x: f32[2,12,5]) { %w = const rand<1> : f32[5,6] %b = const rand<2> : f32[6]
 %d = const dense<2,3,4,5> : i64[4] %i = reshape(%x, %d) %m = matmul(%i, %w) %r = add(%b, %m)
 %t = transpose(%r) {perm = [0,3,1,2]} %y = relu(%t) return %y })");
}

TEST(RowsToImages, AndBeforeTheNormOfRows) {
  testing::expect_rewrite(
      kTurned, into_image("%m = matmul(%x, %w) %n = layer_norm(%m, %b, %v) {axis = 2} %r = relu(%n)"),
      R"(graph (%x: f32[2,12,5]) { %w = const rand<1> : f32[5,6] %b = const rand<2> : f32[6] %v = const rand<3> : f32[6]
 %d = const dense<2,3,4,5> : i64[4] %i = reshape(%x, %d) %m = matmul(%i, %w) %n = layer_norm(%m, %b, %v) {axis = -1}
 %r = relu(%n) %t = transpose(%r) {perm = [0,3,1,2]} %y = relu(%t) return %y })");
}

TEST(RowsToImages, TheNormOfRowsThatBecomeAnImageIsOfTheImage) {
  testing::expect_rewrite(kTurned,
                          R"(graph (%x: f32[2,12,6]) { %b = const rand<2> : f32[6] %v = const rand<3> : f32[6]
 %r = layer_norm(%x, %b, %v) {axis = -1} %d = const dense<2,3,4,6> : i64[4] %i = reshape(%r, %d)
 %y = transpose(%i) {perm = [0,3,1,2]} return %y })",
                          R"(graph (%x: f32[2,12,6]) { %b = const rand<2> : f32[6] %v = const rand<3> : f32[6]
 %d = const dense<2,3,4,6> : i64[4] %i = reshape(%x, %d) %r = layer_norm(%i, %b, %v) {axis = -1}
 %y = transpose(%r) {perm = [0,3,1,2]} return %y })");
}

TEST(RowsToImages, RowsThatOthersReadAreReshapedAlone) {
  Graph graph = parse_graph(R"(graph (%x: f32[2,12,5]) { %w = const rand<1> : f32[5,6] %m = matmul(%x, %w)
 %t = transpose(%m) {perm = [0,2,1]} %d = const dense<2,6,3,4> : i64[4] %y = reshape(%t, %d) return %y, %m })",
                            ops());
  const Graph before = graph.clone();
  kTurned(graph);
  EXPECT_EQ(graph.nodes().size(), 3u);
  EXPECT_TRUE(graph.nodes()[0]->is("matmul")) << print(graph);
  EXPECT_EQ(graph.nodes()[2]->output()->type.text(), "f32[2,6,3,4]");
  testing::expect_same_values(before, graph, {.tolerance = 0});
}

const std::string kBack = "%f = const dense<2,6,12> : i64[3] %r = reshape(%x, %f) %t = transpose(%r) {perm = [0,2,1]}";

TEST(RowsToImages, ElementwiseReadersComeBeforeTheReshapeBack) {
  testing::expect_rewrite(
      kTurned,
      "graph (%x: f32[2,6,3,4]) { %b = const rand<1> : f32[6] " + kBack +
          " %a = add(%t, %b) %g = gelu(%a) %y = softmax(%g) {axis = -1} return %y }",
      R"(graph (%x: f32[2,6,3,4]) { %b = const rand<1> : f32[6] %t = transpose(%x) {perm = [0,2,3,1]}
 %a = add(%t, %b) %g = gelu(%a) %d = const dense<2,12,6> : i64[3] %r = reshape(%g, %d)
 %y = softmax(%r) {axis = -1} return %y })");
}

TEST(RowsToImages, ImagesThatGoAndComeAreGone) {
  Graph graph = parse_graph("graph (%x: f32[2,6,3,4]) { " + kBack +
                                " %u = transpose(%t) {perm = [0,2,1]} %d = const dense<2,6,3,4> : i64[4] "
                                "%i = reshape(%u, %d) %y = relu(%i) return %y }",
                            ops());
  const Graph before = graph.clone();
  kTurned(graph);
  testing::expect_same_values(before, graph, {.tolerance = 0});
  EXPECT_LE(graph.nodes().size(), 2u) << print(graph);
}

TEST(RowsToImages, AnOpenBatchStaysOpen) {
  Graph graph = parse_graph(R"(graph (%x: f32[n,12,5]) { %w = const rand<1> : f32[5,6] %m = matmul(%x, %w)
 %t = transpose(%m) {perm = [0,2,1]} %d = const dense<-1,6,3,4> : i64[4] %y = reshape(%t, %d) return %y })",
                            ops());
  const Graph before = graph.clone();
  EXPECT_TRUE(rows_to_images()(graph));
  verify(graph);
  EXPECT_TRUE(graph.nodes().back()->is("transpose")) << print(graph);
  testing::expect_same_values(before, graph, {.tolerance = 0, .symbols = {{"n", 3}}});
}

TEST(RowsToImages, SparesAnImageOfRowsThatNothingMakes) {
  testing::expect_unchanged([](Graph& g) { rows_to_images()(g); },
                            R"(graph (%x: f32[2,12,6]) { %d = const dense<2,3,4,6> : i64[4] %i = reshape(%x, %d)
 %y = transpose(%i) {perm = [0,3,1,2]} return %y })");
}

void expect_spared(const std::string& text) {
  testing::expect_unchanged([](Graph& g) { rows_to_images()(g); }, text);
}

TEST(RowsToImages, SparesOtherAxesAndOtherShapes) {
  expect_spared(into_image("%r = matmul(%x, %w)", "0,1,2", "2,12,3,2"));
  expect_spared(into_image("%r = matmul(%x, %w)", "0,2,1", "2,3,2,12"));  // takes the channels apart
  expect_spared(into_image("%r = matmul(%x, %w)", "0,2,1", "1,12,3,4"));  // and the images
}

TEST(RowsToImages, SparesATransposeThatOthersRead) {
  expect_spared(R"(graph (%x: f32[2,12,6]) { %t = transpose(%x) {perm = [0,2,1]} %d = const dense<2,6,3,4> : i64[4]
 %y = reshape(%t, %d) %z = relu(%t) return %y, %z })");
}

TEST(RowsToImages, SparesAnOpenImage) {
  expect_spared(R"(graph (%x: f32[2,t,6]) { %t = transpose(%x) {perm = [0,2,1]} %d = const dense<2,6,3,-1> : i64[4]
 %y = reshape(%t, %d) return %y })");
}

}  // namespace
}  // namespace opfuse
