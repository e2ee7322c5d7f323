// Chains through the whole compiler: launches, names, notes, memory, values, and why pairs stay apart.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/pipeline.hpp"
#include "driver/shape_for_target.hpp"
#include "fusion/explain/shaping_text.hpp"
#include "interp/random_inputs.hpp"
#include "ops/registry.hpp"
#include "proof/compare.hpp"
#include "testing/runs_here.hpp"

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
  std::vector<ShapeVerdict> chains;
  std::vector<std::string> notes;
  Program program;
};

Shaped shape(Graph graph, const TargetInfo& target, const ShapeOptions& options = {}) {
  prepare(graph, {}, nullptr);
  Shaped s;
  s.fused = apply(graph, plan_graph(graph, target, {}));
  Shaping shaping = shape_for_target(s.fused, target, options);
  s.chains = pairs_of(shaping.verdicts);
  s.notes = std::move(shaping.notes);
  s.program = lower_to_program(s.fused, target);
  return s;
}

const TargetInfo kTarget = parse_target("cpu:avx512");

TEST(ChainsOfTheCompiler, ALargeMapBetweenTheTwoNeverExists) {
  const Shaped s = shape(block("1", 16, 112, 96, 3, 2), kTarget);
  ASSERT_EQ(s.chains.size(), 1u);
  EXPECT_FALSE(s.chains[0].refused) << s.chains[0].refused->message;
  ASSERT_EQ(s.program.launches.size(), 2u) << print(s.program);
  EXPECT_THAT(s.program.launches[0].name, HasSubstr(s.chains[0].nodes[0] + "+" + s.chains[0].nodes[1]));
  EXPECT_THAT(s.notes, testing::Contains(HasSubstr("1 of 1 pairs")));
  for (const Buffer& b : s.program.buffers)
    EXPECT_NE(b.type.shape, Shape({Dim(1), Dim(96), Dim(112), Dim(112)})) << b.name;
}

TEST(ChainsOfTheCompiler, TheApiSwitchesThemOff) {
  const Model model = Model::from_graph(block("1", 16, 112, 96, 3, 2));
  const auto chained = [&](bool chains, std::vector<std::string> no_pass = {}) {
    const auto exe =
        compile(model, Target::named("cpu:avx512"), {.cache = false, .no_pass = std::move(no_pass), .chains = chains});
    const auto& all = exe.artifact().launches;
    return std::count_if(all.begin(), all.end(),
                         [](const auto& l) { return l.name.find("+Fused") != std::string::npos; });
  };
  EXPECT_EQ(chained(true), 1);
  EXPECT_EQ(chained(false), 0);
  EXPECT_EQ(chained(true, {"join-means"}), 1);
  EXPECT_EQ(chained(true, {"join-chains"}), 0);
  EXPECT_THROW(chained(true, {"join-chain"}), Error);
}

TEST(ChainsOfTheCompiler, TheyCanBeSwitchedOff) {
  const Shaped s = shape(block("1", 16, 112, 96, 3, 2), kTarget, {.no_pass = passes_of_chains()});
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
  for (const ShapingPass& pass : {join_chains(), join_gates()})
    for (ShapeVerdict& verdict : pass(s.fused, {.legal = legality_on(target)})) s.chains.push_back(std::move(verdict));
  s.program = lower_to_program(s.fused, target);
  return s;
}

void expect_joined_values(const Graph& graph, const TargetInfo& target, const std::vector<SymbolValues>& bindings) {
  const Shaped s = joined(graph.clone(), target);
  ASSERT_EQ(s.chains.size(), 1u);
  ASSERT_FALSE(s.chains[0].refused) << target.name << ": " << s.chains[0].refused->message;
  ArtifactOptions options;
  options.cache = false;
  const Executable executable = Executable::from_artifact(build_artifact(s.program, target, options));
  for (const SymbolValues& symbols : bindings) {
    const std::vector<Tensor> inputs = random_inputs(s.fused, {.seed = 1, .symbols = symbols});
    for (const GroupComparison& group : compare_groups(s.fused, s.program, executable, inputs, {}))
      EXPECT_TRUE(group.ok) << target.name << " " << group.name << ": " << group.difference.relative();
  }
}

std::vector<TargetInfo> cpus_of_this_host() {
  std::vector<TargetInfo> targets;
  for (const std::string& name : known_targets())
    if (const TargetInfo target = parse_target(name); !target.is_cuda() && runs_here(target)) targets.push_back(target);
  return targets;
}

class ChainValues : public testing::TestWithParam<Values> {};

TEST_P(ChainValues, EqualTheInterpreter) {
  const Values& v = GetParam();
  const Graph graph = block(v.n, v.c, v.size, v.expanded, v.kernel, v.stride, v.activation);
  const std::vector<SymbolValues> batches =
      v.n == "n" ? std::vector<SymbolValues>{{{"n", 1}}, {{"n", 3}}} : std::vector<SymbolValues>{{}};
  for (const TargetInfo& target : cpus_of_this_host()) expect_joined_values(graph, target, batches);
}

INSTANTIATE_TEST_SUITE_P(Blocks, ChainValues,
                         testing::Values(Values{"1", 16, 112, 96, 3, 2, "relu"}, Values{"1", 24, 57, 140, 3, 1, "silu"},
                                         Values{"n", 24, 56, 72, 5, 2, "hard_swish"}));

/// act(x A) * (x B + b) -> C, as in Llama (silu) and T5 (gelu).
Graph gated(const std::string& rows, int in, int hidden, const std::string& activation = "silu") {
  return parse_graph(
      fmt::format("graph (%x: f32[{rows},{k}]) {{\n %a = const rand<1> : f32[{k},{n}]\n"
                  " %b = const rand<2> : f32[{k},{n}]\n %c = const rand<3> : f32[{n}]\n"
                  " %d = const rand<4> : f32[{n},{k}]\n %g = matmul(%x, %a)\n %s = {act}(%g)\n"
                  " %u = matmul(%x, %b)\n %v = add(%u, %c)\n %h = mul(%s, %v)\n"
                  " %y = matmul(%h, %d)\n return %y\n}}",
                  fmt::arg("rows", rows), fmt::arg("k", in), fmt::arg("n", hidden), fmt::arg("act", activation)),
      ops());
}

TEST(GatesOfTheCompiler, TheFirstProductIsNeverStored) {
  const Shaped s = shape(gated("1,128", 768, 2048), kTarget);
  ASSERT_EQ(s.chains.size(), 1u);
  EXPECT_FALSE(s.chains[0].refused) << s.chains[0].refused->message;
  ASSERT_EQ(s.program.launches.size(), 2u) << print(s.program);
  EXPECT_THAT(s.program.launches[0].name, HasSubstr(s.chains[0].nodes[0] + "+" + s.chains[0].nodes[1]));
  EXPECT_THAT(s.notes, testing::Contains(HasSubstr("1 of 1 gated MLPs")));
}

TEST(GatesOfTheCompiler, TheyCanBeSwitchedOff) {
  const Shaped s = shape(gated("1,128", 768, 2048), kTarget, {.no_pass = passes_of_chains()});
  ASSERT_EQ(s.chains.size(), 1u);
  EXPECT_EQ(s.chains[0].refused->code, "disabled");
  EXPECT_EQ(s.program.launches.size(), 3u);
}

TEST(GatesOfTheCompiler, GpusKeepTwoKernels) {
  const Shaped s = shape(gated("128", 64, 96), parse_target("cuda:sm_90"));
  EXPECT_TRUE(s.chains.empty());
  EXPECT_EQ(s.program.launches.size(), 3u) << print(s.program);
}

TEST(GatesOfTheCompiler, EqualTheInterpreter) {
  for (const TargetInfo& target : cpus_of_this_host()) {
    for (const char* rows : {"1", "2", "3", "17", "2,29"}) expect_joined_values(gated(rows, 37, 75), target, {{}});
    expect_joined_values(gated("n", 67, 130, "gelu"), target, {{{"n", 1}}, {{"n", 2}}, {{"n", 3}}, {{"n", 17}}});
    expect_joined_values(gated("1,n", 64, 96, "sigmoid"), target, {{{"n", 1}}, {{"n", 40}}});
  }
}

}  // namespace
}  // namespace opfuse
