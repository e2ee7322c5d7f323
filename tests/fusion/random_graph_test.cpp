// Random graphs: whatever the plan groups, the fused graph is valid, acyclic and equal to the original.
#include "fusion/random_graph.hpp"

#include <gtest/gtest.h>

#include "fusion/prepared.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "ir/outline.hpp"

namespace opfuse {
namespace {

class RandomGraphs : public testing::TestWithParam<int> {};

TEST_P(RandomGraphs, KeepTheirValuesWhenFused) {
  const Graph original = random_graph(static_cast<uint64_t>(GetParam()));
  verify(original);
  const Graph graph = prepared(original.clone());
  const FusionPlan plan = make_plan(graph);
  const Graph fused = apply(graph, plan);
  verify(fused);
  EXPECT_EQ(plan_from_json(to_json(plan)), plan);
  const std::vector<Tensor> inputs = random_inputs(original);
  const auto want = interpret(original, inputs), got = interpret(fused, inputs);
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_LE(difference(got[i], want[i]).relative(), 1e-6) << print(graph);
  Graph back = fused.clone();
  expand_bodies(back);
  verify(back);
  EXPECT_LE(difference(interpret(back, inputs)[0], want[0]).relative(), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraphs, testing::Range(0, 200));

}  // namespace
}  // namespace opfuse
