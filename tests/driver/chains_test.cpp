// Chains through the whole compiler: launches, names, notes, memory, values, and why pairs stay apart.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/compare.hpp"
#include "driver/pipeline.hpp"
#include "interp/random_inputs.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

using ::testing::HasSubstr;

/// Expand, depthwise, project, as in MobileNet.
Graph block(const std::string& n, int c, int size, int expanded, int kernel, int stride,
            const std::string& activation = "silu") {
  return parse_graph(fmt::format("graph (%x: f32[{n},{c},{s},{s}]) {{\n %w1 = const rand<1> : f32[{e},{c},1,1]\n"
                                 " %b = const rand<2> : f32[{e}]\n %w2 = const rand<3> : f32[{e},1,{k},{k}]\n"
                                 " %w3 = const rand<4> : f32[{c},{e},1,1]\n %a = conv(%x, %w1, %b)\n %r = {act}(%a)\n"
                                 " %d = conv(%r, %w2, %b) {{group={e}, pads=[{p},{p},{p},{p}], strides=[{st},{st}]}}\n"
                                 " %t = {act}(%d)\n %y = conv(%t, %w3)\n return %y\n}}",
                                 fmt::arg("n", n), fmt::arg("c", c), fmt::arg("s", size), fmt::arg("e", expanded),
                                 fmt::arg("k", kernel), fmt::arg("p", kernel / 2), fmt::arg("st", stride),
                                 fmt::arg("act", activation)),
                     ops());
}

struct Shaped {
  Graph fused;
  std::vector<ChainVerdict> chains;
  std::vector<std::string> notes;
  Program program;
};

Shaped shape(Graph graph, const TargetInfo& target, bool chains = true) {
  prepare(graph, {}, nullptr);
  Shaped s;
  s.fused = apply(graph, plan_graph(graph, target, {}));
  s.chains = shape_for_target(s.fused, target, &s.notes, chains);
  s.program = lower_to_program(s.fused, target);
  return s;
}

const TargetInfo kTarget = parse_target("cpu:avx512");

TEST(ChainsOfTheCompiler, ALargeMapBetweenTheTwoNeverExists) {
  const Shaped s = shape(block("1", 16, 112, 96, 3, 2), kTarget);
  ASSERT_EQ(s.chains.size(), 1u);
  EXPECT_FALSE(s.chains[0].refused) << s.chains[0].refused->message;
  ASSERT_EQ(s.program.launches.size(), 2u) << print(s.program);
  EXPECT_THAT(s.program.launches[0].name, HasSubstr(s.chains[0].first + "+" + s.chains[0].second));
  EXPECT_THAT(s.notes, testing::Contains(HasSubstr("1 of 1 pairs")));
  for (const Buffer& b : s.program.buffers)
    EXPECT_NE(b.type.shape, Shape({Dim(1), Dim(96), Dim(112), Dim(112)})) << b.name;
}

TEST(ChainsOfTheCompiler, TheApiSwitchesThemOff) {
  const Model model = Model::from_graph(block("1", 16, 112, 96, 3, 2));
  const auto chained = [&](bool chains) {
    const auto exe = compile(model, Target::named("cpu:avx512"), {.cache = false, .chains = chains});
    const auto& all = exe.artifact().launches;
    return std::count_if(all.begin(), all.end(),
                         [](const auto& l) { return l.name.find("+Fused") != std::string::npos; });
  };
  EXPECT_EQ(chained(true), 1);
  EXPECT_EQ(chained(false), 0);
}

TEST(ChainsOfTheCompiler, TheyCanBeSwitchedOff) {
  const Shaped s = shape(block("1", 16, 112, 96, 3, 2), kTarget, false);
  ASSERT_EQ(s.chains.size(), 1u);
  EXPECT_EQ(s.chains[0].refused->code, "disabled");
}

TEST(ChainsOfTheCompiler, ASmallMapStaysInItsCacheAnyway) {
  const Shaped s = shape(block("1", 160, 7, 960, 3, 1), kTarget);
  ASSERT_EQ(s.chains.size(), 1u);
  ASSERT_TRUE(s.chains[0].refused);
  EXPECT_EQ(s.chains[0].refused->code, "no_gain");
  EXPECT_THAT(s.chains[0].refused->message, HasSubstr("kilocycles"));
  EXPECT_EQ(s.program.launches.size(), 3u);
}

/// Why a convolution with `taps` x `taps` weights and the depthwise one behind it stay apart.
std::string refusal(const std::string& image, int taps) {
  const Shaped s =
      shape(parse_graph(fmt::format(R"(graph (%x: f32[1,32,{image}]) {{
    %w1 = const rand<1> : f32[64,32,{taps},{taps}]
    %w2 = const rand<2> : f32[64,1,3,3]
    %a = conv(%x, %w1) {{pads=[{pad},{pad},{pad},{pad}]}}
    %r = relu(%a)
    %y = conv(%r, %w2) {{group=64, pads=[1,1,1,1]}}
    return %y
  }})",
                                    fmt::arg("image", image), fmt::arg("taps", taps), fmt::arg("pad", taps / 2)),
                        ops()),
            kTarget);
  return s.chains.size() == 1 && s.chains[0].refused ? s.chains[0].refused->message : "";
}

TEST(ChainsOfTheCompiler, WhatTheKernelDoesNotTakeIsRefusedByItsReason) {
  EXPECT_THAT(refusal("h,w", 1), HasSubstr("symbolic image extents"));
}

TEST(ChainsOfTheCompiler, AConvolutionThatWinogradMayComputeIsLeftAlone) {
  EXPECT_THAT(refusal("112,112", 3), HasSubstr("other algorithms"));
}

struct Values {
  std::string n;
  int c, size, expanded, kernel, stride;
  const char* activation;
};

/// Joined wherever the kernel takes it, whatever it costs.
Shaped joined(Graph graph, const TargetInfo& target) {
  prepare(graph, {}, nullptr);
  Shaped s;
  s.fused = apply(graph, plan_graph(graph, target, {}));
  s.chains = join_chains(s.fused, [&](const Node& node) { return illegal_on(node, target); });
  s.program = lower_to_program(s.fused, target);
  return s;
}

class ChainValues : public testing::TestWithParam<Values> {};

TEST_P(ChainValues, EqualTheInterpreter) {
  const Values& v = GetParam();
  for (const std::string& name : known_targets()) {
    const TargetInfo target = parse_target(name);
    const std::vector<std::string> host = host_features();
    if (target.is_cuda() || !std::all_of(target.features.begin(), target.features.end(), [&](const std::string& f) {
          return std::find(host.begin(), host.end(), f) != host.end();
        }))
      continue;
    const Shaped s = joined(block(v.n, v.c, v.size, v.expanded, v.kernel, v.stride, v.activation), target);
    ASSERT_EQ(s.chains.size(), 1u);
    EXPECT_FALSE(s.chains[0].refused) << name << ": " << s.chains[0].refused->message;
    ArtifactOptions options;
    options.cache = false;
    const Executable executable = Executable::from_artifact(build_artifact(s.program, target, options));
    for (int64_t batch : v.n == "n" ? std::vector<int64_t>{1, 3} : std::vector<int64_t>{1}) {
      const std::vector<Tensor> inputs = random_inputs(s.fused, {.seed = 1, .symbols = {{"n", batch}}});
      for (const GroupComparison& group : compare_groups(s.fused, s.program, executable, inputs, {}))
        EXPECT_TRUE(group.ok) << name << " " << group.name << ": " << group.difference.relative();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Blocks, ChainValues,
                         testing::Values(Values{"1", 16, 112, 96, 3, 2, "relu"}, Values{"1", 24, 57, 140, 3, 1, "silu"},
                                         Values{"n", 24, 56, 72, 5, 2, "hard_swish"}));

}  // namespace
}  // namespace opfuse
