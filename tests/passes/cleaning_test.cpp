// Identities go, constants fold; what must stay stays.
#include <gtest/gtest.h>

#include "passes/passes.hpp"
#include "testing/rewrite.hpp"

namespace opfuse {
namespace {

using testing::expect_rewrite;
using testing::expect_unchanged;

testing::Rewrite only(Pass pass) {
  return [pass](Graph& graph) { run_passes(graph, {pass}); };
}
testing::Rewrite clean() {
  return [](Graph& graph) { run_passes(graph, cleaning_passes()); };
}

TEST(RemoveIdentity, ConnectsItsNeighbours) {
  expect_rewrite(only(remove_identity()),
                 R"(graph (%x: f32[2,3]) { %a = relu(%x) %b = identity(%a) %c = dropout(%b) %y = relu(%c) return %y })",
                 R"(graph (%x: f32[2,3]) { %a = relu(%x) %y = relu(%a) return %y })");
}

TEST(RemoveIdentity, KeepsTheOutputsName) {
  expect_rewrite(only(remove_identity()), R"(graph (%x: f32[2]) { %a = relu(%x) %out = identity(%a) return %out })",
                 R"(graph (%x: f32[2]) { %out = relu(%x) return %out })");
}

TEST(RemoveIdentity, SparesOneBetweenInputAndOutput) {
  expect_unchanged(only(remove_identity()), R"(graph (%x: f32[2]) { %y = identity(%x) return %y })");
  expect_unchanged(only(remove_identity()), R"(graph (%x: f32[2]) { %a = relu(%x) %y = identity(%a) return %a, %y })");
}

TEST(RemoveIdentity, SparesADropoutWhoseMaskIsRead) {
  expect_unchanged(only(remove_identity()),
                   R"(graph (%x: f32[2]) { %a = relu(%x) %b, %m = dropout(%a) %y = relu(%b) return %y, %m })");
}

TEST(RemoveIdentity, AConditionThatIsTheSameEverywhereChoosesAnOperand) {
  const char* const text =
      "graph (%x: f32[2,3], %z: f32[2,3]) { %c = const splat<CONDITION> : bool[2,1] %a = exp(%x)"
      " %b = tanh(%z) %w = where(%c, %a, %b) %y = relu(%w) return %y }";
  const auto with = [&](const std::string& condition) {
    return std::string(text).replace(std::string(text).find("CONDITION"), 9, condition);
  };
  expect_rewrite(clean(), with("true"), "graph (%x: f32[2,3], %z: f32[2,3]) { %a = exp(%x) %y = relu(%a) return %y }");
  expect_rewrite(clean(), with("false"),
                 "graph (%x: f32[2,3], %z: f32[2,3]) { %b = tanh(%z) %y = relu(%b) return %y }");
}

TEST(RemoveIdentity, SparesAChoiceThatIsMadeOrBroadcasts) {
  expect_unchanged(only(remove_identity()),
                   R"(graph (%x: f32[2,3], %z: f32[2,3]) { %c = const dense<true,false> : bool[2,1]
                      %w = where(%c, %x, %z) %y = relu(%w) return %y })");
  expect_unchanged(only(remove_identity()), R"(graph (%x: f32[3], %z: f32[2,3]) { %c = const splat<true> : bool[2,1]
                      %w = where(%c, %x, %z) %y = relu(%w) return %y })");
}

TEST(FoldConstants, ComputesWhatDependsOnConstants) {
  expect_rewrite(only(fold_constants()),
                 R"(graph (%x: f32[2]) { %a = const dense<1,-2> : f32[2] %b = const splat<3> : f32[2]
                      %c = add(%a, %b) %d = relu(%c) %y = mul(%x, %d) return %y })",
                 R"(graph (%x: f32[2]) { %d = const dense<4,1> : f32[2] %y = mul(%x, %d) return %y })");
}

TEST(FoldConstants, NamesTheLimitThatBound) {
  const char* text = R"(graph (%x: f32[64,64]) { %one = const splat<1> : f32[1,1] %to = const dense<64,64> : i64[2]
                          %big = expand(%one, %to) %y = add(%x, %big) return %y })";
  Graph graph = parse_graph(text, ops());
  PassRun run = run_passes(graph, {fold_constants()}, {.fold_growth_bytes = 100});
  EXPECT_FALSE(run.changed());
  ASSERT_EQ(run.notes.size(), 1u);
  EXPECT_NE(run.notes[0].find("fold_growth_bytes = 100"), std::string::npos) << run.notes[0];
  EXPECT_TRUE(run_passes(graph, {fold_constants()}).changed());
}

/// 4 * 1.5 is a size that the run would read; shapes speak of it after the node is gone.
TEST(FoldConstants, SettlesSizesThatTurnOutConstant) {
  Graph graph = parse_graph(R"(graph (%x: f32[4]) { %h = const dense<4> : i64[1] %f = cast(%h) {to = f32}
    %s = const splat<1.5> : f32[1] %m = mul(%f, %s) %t = cast(%m) {to = i64} %n = read_sizes(%t) {defines = ["n"]}
    %y = constant_of_shape(%n) {value = 2.0} %z = exp(%y) return %z })",
                            ops());
  ASSERT_EQ(graph.outputs()[0]->type.text(), "f32[n]");
  EXPECT_TRUE(run_passes(graph, {fold_constants()}).changed());
  EXPECT_EQ(graph.outputs()[0]->type.text(), "f32[6]");
}

TEST(FoldConstants, KeepsASizeAsARealNumber) {
  expect_rewrite(
      only(fold_constants()),
      "graph (%x: f32[3,5], %z: f32[2]) { %s = shape(%x) %f = cast(%s) {to = f32} %y = mul(%f, %z) return %y }",
      "graph (%x: f32[3,5], %z: f32[2]) { %f = const dense<3,5> : f32[2] %y = mul(%f, %z) return %y }");
}

TEST(CommonSubexpressions, BecomeOne) {
  expect_rewrite(
      only(eliminate_common_subexpressions()),
      R"(graph (%x: f32[2]) { %a = relu(%x) %b = relu(%x) %c = exp(%a) %d = exp(%b) %y = add(%c, %d) return %y })",
      R"(graph (%x: f32[2]) { %a = relu(%x) %c = exp(%a) %y = add(%c, %c) return %y })");
}

TEST(CommonSubexpressions, SeeEqualSmallConstants) {
  expect_rewrite(only(eliminate_common_subexpressions()),
                 R"(graph (%x: f32[2]) { %p = const splat<2> : f32[] %q = const splat<2> : f32[]
                      %a = mul(%x, %p) %b = mul(%x, %q) %y = add(%a, %b) return %y })",
                 R"(graph (%x: f32[2]) { %p = const splat<2> : f32[] %a = mul(%x, %p) %y = add(%a, %a) return %y })");
}

TEST(CommonSubexpressions, DifferInAttributesOrOutputs) {
  expect_unchanged(
      only(eliminate_common_subexpressions()),
      R"(graph (%x: f32[2,2]) { %a = softmax(%x) {axis = 0} %b = softmax(%x) {axis = 1} %y = add(%a, %b) return %y })");
  expect_unchanged(only(eliminate_common_subexpressions()),
                   R"(graph (%x: f32[2]) { %a = relu(%x) %b = relu(%x) return %a, %b })");
}

TEST(SimplifyMovement, MergesReshapes) {
  expect_rewrite(only(simplify_movement()),
                 R"(graph (%x: f32[2,3,4]) { %s = const dense<6,4> : i64[2] %t = const dense<0,2,2> : i64[3]
                      %a = reshape(%x, %s) %y = reshape(%a, %t) return %y })",
                 R"(graph (%x: f32[2,3,4]) { %t = const dense<6,2,2> : i64[3] %y = reshape(%x, %t) return %y })");
}

TEST(SimplifyMovement, MergesASqueezeIntoItsReshape) {
  expect_rewrite(only(simplify_movement()),
                 R"(graph (%x: f32[n,6]) { %a = const dense<-1,2,3,1> : i64[4] %k = const dense<3> : i64[1]
                             %r = reshape(%x, %a) %y = squeeze(%r, %k) return %y })",
                 R"(graph (%x: f32[n,6]) { %a = const dense<-1,2,3> : i64[3] %y = reshape(%x, %a) return %y })");
}

TEST(SimplifyMovement, SparesASqueezeWithTwoOpenDimensions) {
  const std::string text = R"(graph (%x: f32[n,m,6]) { %a = const dense<0,0,6,1> : i64[4] %k = const dense<3> : i64[1]
                              %r = reshape(%x, %a) %e = exp(%r) %y = squeeze(%e, %k) return %y })";
  expect_unchanged(only(simplify_movement()), text);
  const std::string open = R"(graph (%x: f32[n,m,6]) { %a = const dense<0,0,2,3,1> : i64[5] %k = const dense<4> : i64[1]
                              %r = reshape(%x, %a) %y = squeeze(%r, %k) return %y })";
  expect_unchanged(only(simplify_movement()), open);
}

TEST(SimplifyMovement, MergesTransposes) {
  expect_rewrite(
      only(simplify_movement()),
      R"(graph (%x: f32[2,3,4]) { %a = transpose(%x) {perm = [1,2,0]} %y = transpose(%a) {perm = [0,2,1]} return %y })",
      R"(graph (%x: f32[2,3,4]) { %y = transpose(%x) {perm = [1,0,2]} return %y })");
  expect_rewrite(clean(), R"(graph (%x: f32[2,3]) { %a = transpose(%x) %b = transpose(%a) %y = relu(%b) return %y })",
                 R"(graph (%x: f32[2,3]) { %y = relu(%x) return %y })");
}

TEST(SimplifyMovement, SparesATransposeOfEqualDimensions) {
  expect_unchanged(only(simplify_movement()), R"(graph (%x: f32[3,3]) { %a = transpose(%x) %y = relu(%a) return %y })");
}

}  // namespace
}  // namespace opfuse
