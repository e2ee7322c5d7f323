// Float models: each launch on the oracle's tensors, by the names of what it reads and writes, also inside nodes that
// lowering divides.
#include <gtest/gtest.h>

#include "driver/pipeline.hpp"
#include "interp/random_inputs.hpp"
#include "ops/registry.hpp"
#include "proof/compare.hpp"

namespace opfuse {
namespace {

std::vector<GroupComparison> compared(const std::string& text) {
  Graph graph = parse_graph(text, ops());
  const TargetInfo target = parse_target("host");
  prepare(graph, {}, nullptr);
  const Graph fused = apply(graph, plan_graph(graph, target, {}));
  const Program program = lower_to_program(fused, target);
  const Executable executable = Executable::from_artifact(build_artifact(program, target, {.cache = false}));
  return compare_groups(fused, program, executable, random_inputs(fused), {});
}

TEST(CompareGroups, KnowsThePartsOfNormsWithoutNames) {
  const auto groups = compared(R"(graph (%x: f32[4,8]) {
    %two = const splat<2> : f32[] %eps = const splat<0.00001> : f32[] %s = const rand<1> : f32[8] %w = const rand<2> : f32[8,8]
    %1 = pow(%x, %two) %2 = reduce_mean(%1) {axes=[-1]} %3 = add(%2, %eps) %4 = sqrt(%3) %5 = div(%x, %4) %6 = mul(%5, %s)
    %7 = matmul(%6, %w) %8 = add(%7, %x)
    %11 = pow(%8, %two) %12 = reduce_mean(%11) {axes=[-1]} %13 = add(%12, %eps) %14 = sqrt(%13) %15 = div(%8, %14)
    %y = mul(%15, %s) return %y })");
  EXPECT_GE(groups.size(), 3u);
  for (const GroupComparison& group : groups) EXPECT_TRUE(group.ok) << group.name;
}

TEST(CompareGroups, AnInputThatIsReturnedStaysKnown) {
  for (const char* results : {"%x, %y", "%y, %x", "%x, %y, %x"}) {
    const auto groups =
        compared(std::string("graph (%x: f32[4]) { %y = relu(%x) %z = neg(%x) return %z, ") + results + " }");
    EXPECT_FALSE(groups.empty());
    for (const GroupComparison& group : groups) EXPECT_TRUE(group.ok) << results << ": " << group.name;
  }
}

// Rows less their mean, added up: 0 but for roundings, which are of the size of the terms and not of the result.
TEST(CompareModel, OutputsThatCancelAreJudgedByTheirTerms) {
  Graph graph = parse_graph(R"(graph (%x: f32[2,34,34]) {
    %axis = const splat<-1> : i64[1]
    %half = const splat<0.5> : f32[34,1]
    %m = reduce_mean(%x, %axis)
    %d = sub(%x, %m)
    %y = matmul(%d, %half)
    return %y })",
                            ops());
  const TargetInfo target = parse_target("host");
  prepare(graph, {}, nullptr);
  const Graph fused = apply(graph, plan_graph(graph, target, {}));
  const Program program = lower_to_program(fused, target);
  const Executable executable = Executable::from_artifact(build_artifact(program, target, {.cache = false}));
  const auto inputs = random_inputs(fused);
  const Comparison right = compare_model(graph, fused, program, executable, inputs, inputs, {});
  EXPECT_TRUE(right.outputs[0].ok) << right.outputs[0].difference.max_abs;
  EXPECT_GT(right.outputs[0].difference.relative(), 1) << "nothing cancels: the test says nothing";

  Graph other = parse_graph(R"(graph (%x: f32[2,34,34]) {
    %c = const splat<0.00001> : f32[34,1]
    %y = matmul(%x, %c)
    return %y })",
                            ops());
  const Comparison wrong = compare_model(other, fused, program, executable, inputs, inputs, {});
  EXPECT_FALSE(wrong.outputs[0].ok) << "sums of 34 numbers, 1e-5 of them";
}

}  // namespace
}  // namespace opfuse
