// Linears between reshapes of their rows: where the reshape moves, where it stays and why, and that values stay equal.
#include <gtest/gtest.h>

#include "passes/passes.hpp"
#include "testing/rewrite.hpp"

namespace opfuse {
namespace {

const testing::Rewrite kUnflatten = [](Graph& graph) {
  run_passes(graph, {unflatten_linear()});  // removes what nobody reads any more
  run_passes(graph, cleaning_passes());
};

std::string flattened(const std::string& linear, const std::string& target = "2,3,5") {
  return R"(graph (%x: f32[2,3,4]) {
 %rows = const dense<6,4> : i64[2] %back = const dense<)" +
         target + R"(> : i64[3] %w = const rand<1> : f32[4,5] %v = const rand<1> : f32[5,4] %b = const rand<2> : f32[5]
 %each = const rand<2> : f32[6,5] %f = reshape(%x, %rows) )" +
         linear + "\n return %y }";
}

std::string code_of(const std::string& text) {
  Graph graph = parse_graph(text, ops());
  RewriteReport report;
  EXPECT_FALSE(unflatten_linear()(graph, &report));
  return report.notes.empty() ? "" : report.notes[0].reason.code;
}

TEST(UnflattenLinear, WorksOnTheRankAroundIt) {
  testing::expect_rewrite(kUnflatten, flattened("%g = gemm(%f, %w, %b) %y = reshape(%g, %back)"),
                          R"(graph (%x: f32[2,3,4]) { %w = const rand<1> : f32[4,5] %b = const rand<2> : f32[5]
 %m = matmul(%x, %w)  %y = add(%m, %b)  return %y })");
}

TEST(UnflattenLinear, TakesAMatMulToo) {
  testing::expect_rewrite(kUnflatten, flattened("%g = matmul(%f, %w) %y = reshape(%g, %back)"),
                          R"(graph (%x: f32[2,3,4]) { %w = const rand<1> : f32[4,5]
 %y = matmul(%x, %w)  return %y })");
}

TEST(UnflattenLinear, TransposesItsWeight) {
  Graph graph = parse_graph(flattened("%g = gemm(%f, %v) {transB = true} %y = reshape(%g, %back)", "2,-1,5"), ops());
  const Graph before = graph.clone();
  kUnflatten(graph);
  ASSERT_EQ(graph.nodes().size(), 1u);
  EXPECT_TRUE(graph.nodes()[0]->is("matmul"));
  testing::expect_same_values(before, graph, {});
}

TEST(UnflattenLinear, KeepsAnOpenBatch) {
  const std::string text = R"(graph (%x: f32[n,4]) { %back = const dense<-1,3,5> : i64[3]
 %w = const rand<1> : f32[4,5] %g = gemm(%x, %w) %y = reshape(%g, %back) return %y })";
  Graph graph = parse_graph(text, ops());
  const Graph before = graph.clone();
  EXPECT_TRUE(unflatten_linear()(graph));
  verify(graph);
  testing::expect_same_values(before, graph, {.symbols = {{"n", 6}}});
}

TEST(UnflattenLinear, NeedsNoTargetWhereTheReshapesCancel) {
  const std::string text = R"(graph (%x: f32[n,t,4]) { %rows = const dense<-1,4> : i64[2]
 %w = const rand<1> : f32[4,5] %zero = const dense<0> : i64[1] %two = const dense<2> : i64[1] %last = const dense<5> : i64[1]
 %shape = shape(%x) %lead = slice(%shape, %zero, %two) %back = concat(%lead, %last) {axis = 0}
 %f = reshape(%x, %rows) %g = gemm(%f, %w) %y = reshape(%g, %back) return %y })";
  testing::expect_rewrite(kUnflatten, text, R"(graph (%x: f32[n,t,4]) { %w = const rand<1> : f32[4,5]
 %y = matmul(%x, %w) return %y })");
}

TEST(UnflattenLinear, SparesAReshapeThatSplitsFeatures) {
  testing::expect_unchanged([](Graph& g) { unflatten_linear()(g); },
                            flattened("%g = gemm(%f, %w, %b) %y = reshape(%g, %back)", "2,5,3"));
}

TEST(UnflattenLinear, SparesAResultThatOthersRead) {
  testing::expect_unchanged([](Graph& g) { unflatten_linear()(g); },
                            flattened("%g = gemm(%f, %w, %b) %r = reshape(%g, %back) %h = relu(%g) "
                                      "%s = reshape(%h, %back) %y = add(%r, %s)"));
}

TEST(UnflattenLinear, SaysWhyItDeclines) {
  EXPECT_EQ(code_of(flattened("%g = gemm(%f, %w, %each) %y = reshape(%g, %back)")), "bias_shape");
  EXPECT_EQ(code_of(flattened("%g = gemm(%f, %w, %b) {alpha = 2.0} %y = reshape(%g, %back)")), "gemm_attributes");
  EXPECT_EQ(code_of(flattened("%k = relu(%w) %g = gemm(%f, %k) %y = reshape(%g, %back)")), "computed_weight");
}

}  // namespace
}  // namespace opfuse
