// Squeeze-and-excitation through the whole compiler: launches, values at open batches, and CUDA left as it was.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/pipeline.hpp"
#include "driver/shape_for_target.hpp"
#include "interp/random_inputs.hpp"
#include "ops/registry.hpp"
#include "proof/compare.hpp"
#include "testing/runs_here.hpp"

namespace opfuse {
namespace {

using ::testing::HasSubstr;

/// Expand, depthwise, squeeze and excite, project, as in MobileNetV3.
Graph block(const std::string& n, int c, int size, int expanded, int kernel, int stride,
            const std::string& gate = "hard_sigmoid") {
  return parse_graph(
      fmt::format(R"(graph (%x: f32[{n},{c},{s},{s}]) {{
    %w1 = const rand<1> : f32[{e},{c},1,1]
    %b = const rand<2> : f32[{e}]
    %w2 = const rand<3> : f32[{e},1,{k},{k}]
    %w3 = const rand<4> : f32[8,{e},1,1]
    %w4 = const rand<5> : f32[{e},8,1,1]
    %w5 = const rand<6> : f32[{c},{e},1,1]
    %a = conv(%x, %w1, %b)
    %r = silu(%a)
    %d = conv(%r, %w2, %b) {{group={e}, pads=[{p},{p},{p},{p}], strides=[{st},{st}]}}
    %t = silu(%d)
    %m = global_average_pool(%t)
    %f = conv(%m, %w3)
    %h = relu(%f)
    %i = conv(%h, %w4, %b)
    %g = {gate}(%i)
    %q = mul(%g, %t)
    %y = conv(%q, %w5)
    return %y
  }})",
                  fmt::arg("n", n), fmt::arg("c", c), fmt::arg("s", size), fmt::arg("e", expanded),
                  fmt::arg("k", kernel), fmt::arg("p", kernel / 2), fmt::arg("st", stride), fmt::arg("gate", gate)),
      ops());
}

struct Shaped {
  Graph fused;
  std::vector<ShapeVerdict> pairs;
  Program program;
};

Shaped shape(Graph graph, const TargetInfo& target, const ShapeOptions& options = {}) {
  prepare(graph, {}, nullptr);
  Shaped s;
  s.fused = apply(graph, plan_graph(graph, target, {}));
  s.pairs = shape_for_target(s.fused, target, options).verdicts;
  s.program = lower_to_program(s.fused, target);
  return s;
}

const ShapeVerdict& pair_of(const Shaped& s, const std::string& pass) {
  for (const ShapeVerdict& pair : s.pairs)
    if (pair.pass == pass) return pair;
  ADD_FAILURE() << "no " << pass;
  return s.pairs.at(0);
}

const TargetInfo kTarget = parse_target("cpu:avx512");

TEST(Squeeze, TheMeansAreSummedByTheKernelThatMakesTheMap) {
  const Shaped s = shape(block("1", 40, 14, 240, 3, 1), kTarget);
  const ShapeVerdict& means = pair_of(s, "join-means");
  EXPECT_FALSE(means.refused) << means.refused->message;
  const Launch& launch = s.program.launches.at(1);
  EXPECT_EQ(launch.name, means.nodes[0] + "+" + means.nodes[1]);
  EXPECT_EQ(launch.schedule.get("parts_p", 0), 2);
}

TEST(Squeeze, TheGateIsAFactorOfTheWeightsWhereTheMapIsLarge) {
  const Shaped large = shape(block("1", 24, 56, 72, 3, 1), kTarget);
  const ShapeVerdict& gate = pair_of(large, "join-channel-factors");
  EXPECT_FALSE(gate.refused) << gate.refused->message;
  EXPECT_EQ(large.program.launches.back().name, "mul+" + gate.nodes[1]);
  const Shaped small = shape(block("1", 160, 7, 960, 3, 1), kTarget);
  ASSERT_TRUE(pair_of(small, "join-channel-factors").refused);
  EXPECT_EQ(pair_of(small, "join-channel-factors").refused->code, "no_gain");
  EXPECT_THAT(pair_of(small, "join-channel-factors").refused->message, HasSubstr("kilocycles"));
}

TEST(Squeeze, EveryPairCanBeSwitchedOff) {
  const Shaped s = shape(block("1", 40, 14, 240, 3, 1), kTarget, {.no_pass = passes_of_chains()});
  for (const ShapeVerdict& pair : s.pairs) {
    ASSERT_TRUE(pair.refused) << pair.pass;
    EXPECT_EQ(pair.refused->code, "disabled");
  }
}

TEST(Squeeze, OnGpusEveryKernelStaysItsOwn) {
  EXPECT_TRUE(shape(block("1", 40, 14, 240, 3, 1), parse_target("cuda:sm_80")).pairs.empty());
}

struct Values {
  std::string n;
  int c, size, expanded, kernel, stride;
  const char* gate;
};

class SqueezeValues : public testing::TestWithParam<Values> {};

TEST_P(SqueezeValues, EqualTheInterpreter) {
  const Values& v = GetParam();
  for (const std::string& name : known_targets()) {
    const TargetInfo target = parse_target(name);
    if (target.is_cuda() || !runs_here(target)) continue;
    const Shaped s = shape(block(v.n, v.c, v.size, v.expanded, v.kernel, v.stride, v.gate), target);
    EXPECT_FALSE(pair_of(s, "join-means").refused) << name << ": " << pair_of(s, "join-means").refused->message;
    ArtifactOptions options;
    options.cache = false;
    const Executable executable = Executable::from_artifact(build_artifact(s.program, target, options));
    for (int64_t batch : v.n == "n" ? std::vector<int64_t>{1, 2, 3, 17} : std::vector<int64_t>{1}) {
      const std::vector<Tensor> inputs = random_inputs(s.fused, {.seed = 1, .symbols = {{"n", batch}}});
      for (const GroupComparison& group : compare_groups(s.fused, s.program, executable, inputs, {}))
        EXPECT_TRUE(group.ok) << name << " " << group.name << ": " << group.difference.relative() << ", "
                              << group.real.of_bound << " of its bound (" << group.real.got << ", not "
                              << group.real.want << " +- " << group.real.bound << " at " << group.real.at
                              << "); drawn: " << group.exact.outside << " of " << group.exact.elements << " outside "
                              << group.problem;
      for (const OutputComparison& output : compare_outputs(s.fused, executable, inputs, inputs, {}))
        EXPECT_TRUE(output.ok) << name << ": " << output.difference.relative();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Blocks, SqueezeValues,
                         testing::Values(Values{"1", 16, 112, 64, 3, 2, "sigmoid"},
                                         Values{"1", 24, 28, 72, 5, 1, "hard_sigmoid"},
                                         Values{"1", 32, 7, 120, 5, 1, "sigmoid"},
                                         Values{"n", 24, 28, 72, 5, 2, "sigmoid"},
                                         Values{"n", 20, 15, 37, 3, 1, "hard_sigmoid"}));

}  // namespace
}  // namespace opfuse
