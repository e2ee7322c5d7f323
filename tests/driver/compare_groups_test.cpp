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

}  // namespace
}  // namespace opfuse
