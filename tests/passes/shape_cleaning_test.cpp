// Shape arithmetic folds, and movements that move nothing go.
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

TEST(FoldConstants, FoldsShapeArithmeticOfKnownShapes) {
  expect_rewrite(clean(),
                 R"(graph (%x: f32[2,3,4]) {
                      %i = const splat<0> : i64[] %axis = const splat<0> : i64[1] %rest = const splat<-1> : i64[1]
                      %s = shape(%x) %n = gather(%s, %i) %m = unsqueeze(%n, %axis) %t = concat(%m, %rest)
                      %y = reshape(%x, %t) return %y })",
                 R"(graph (%x: f32[2,3,4]) { %t = const dense<2,-1> : i64[2] %y = reshape(%x, %t) return %y })");
}

TEST(FixReshapeTargets, KeepsSymbolicDimensionsSymbolic) {
  expect_rewrite(clean(),
                 R"(graph (%x: f32[n,3,4]) {
                      %i = const splat<0> : i64[] %axis = const splat<0> : i64[1] %rest = const splat<-1> : i64[1]
                      %s = shape(%x) %n = gather(%s, %i) %m = unsqueeze(%n, %axis) %t = concat(%m, %rest)
                      %y = reshape(%x, %t) return %y })",
                 R"(graph (%x: f32[n,3,4]) { %t = const dense<0,12> : i64[2] %y = reshape(%x, %t) return %y })");
}

TEST(SimplifyMovement, RemovesWhatMovesNothing) {
  expect_rewrite(clean(),
                 R"(graph (%x: f32[2,3]) { %p = const splat<0> : i64[4] %s = const dense<2,3> : i64[2]
                      %a = pad(%x, %p) %b = reshape(%a, %s) %c = expand(%b, %s) %d = cast(%c) {to = f32} %e = concat(%d)
                      %y = relu(%e) return %y })",
                 R"(graph (%x: f32[2,3]) { %y = relu(%x) return %y })");
}

TEST(SimplifyMovement, SparesASliceThatReverses) {
  expect_unchanged(
      only(simplify_movement()),
      R"(graph (%x: f32[4]) { %s = const splat<3> : i64[1] %e = const splat<-100> : i64[1] %a = const splat<0> : i64[1]
                        %st = const splat<-1> : i64[1] %b = slice(%x, %s, %e, %a, %st) %y = relu(%b) return %y })");
}

}  // namespace
}  // namespace opfuse
