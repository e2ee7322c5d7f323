// A block of a decoder as Llama has it (RMSNorm, rotary embeddings by Split, grouped queries, SwiGLU), its sequence
// known and open: what is recognised, how many kernels there are, and that each of them is right.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/pipeline.hpp"
#include "driver/shape_for_target.hpp"
#include "interp/random_inputs.hpp"
#include "ops/registry.hpp"
#include "proof/compare.hpp"

namespace opfuse {
namespace {

std::string norm(const std::string& x, const std::string& y) {
  return fmt::format(
      "%{1}a = pow(%{0}, %two) %{1}b = reduce_mean(%{1}a) {{axes=[-1]}} %{1}c = add(%{1}b, %eps) %{1}d = sqrt(%{1}c)\n"
      "%{1}e = reciprocal(%{1}d) %{1}f = mul(%{0}, %{1}e) %{1} = mul(%gain, %{1}f)\n",
      x, y);
}

/// x of [1, heads, n, 16] turned.
std::string turned(const std::string& x, const std::string& y) {
  return fmt::format(
      "%{1}a, %{1}b = split(%{0}) {{axis = -1, num_outputs = 2}} %{1}c = neg(%{1}b) %{1}d = concat(%{1}c, %{1}a) "
      "{{axis = -1}} %{1}e = mul(%{0}, %cos) %{1}f = mul(%{1}d, %sin) %{1} = add(%{1}e, %{1}f)\n",
      x, y);
}

/// Two heads of keys or values as four.
std::string repeated(const std::string& x, const std::string& y) {
  return fmt::format("%{1}a = unsqueeze(%{0}, %at2) %{1}b = expand(%{1}a, %twice) %{1} = reshape(%{1}b, %four)\n", x,
                     y);
}

/// `n`: the sequence, a number or a name.
Graph block(const std::string& n) {
  std::string text =
      fmt::format("graph (%x: f32[1,{0},64], %cos: f32[{0},16], %sin: f32[{0},16], %mask: f32[{0},{0}]) {{\n", n);
  text += R"(%two = const splat<2> : f32[] %eps = const splat<0.00001> : f32[] %gain = const rand<9> : f32[64]
    %wq = const rand<1> : f32[64,64] %wk = const rand<2> : f32[64,32] %wv = const rand<3> : f32[64,32] %wo = const rand<4> : f32[64,64]
    %wg = const rand<5> : f32[64,176] %wu = const rand<6> : f32[64,176] %wd = const rand<7> : f32[176,64]
    %heads = const dense<1,-1,4,16> : i64[4] %groups = const dense<1,-1,2,16> : i64[4] %four = const dense<1,4,-1,16> : i64[4]
    %twice = const dense<1,1,2,1,1> : i64[5] %at2 = const dense<2> : i64[1] %flat = const dense<1,-1,64> : i64[3] %root = const splat<0.25> : f32[]
)" + norm("x", "n1");
  text += R"(%q0 = matmul(%n1, %wq) %q1 = reshape(%q0, %heads) %q2 = transpose(%q1) {perm = [0,2,1,3]}
    %k0 = matmul(%n1, %wk) %k1 = reshape(%k0, %groups) %k2 = transpose(%k1) {perm = [0,2,1,3]}
    %v0 = matmul(%n1, %wv) %v1 = reshape(%v0, %groups) %v2 = transpose(%v1) {perm = [0,2,1,3]}
)" + turned("q2", "q") +
          turned("k2", "k3") + repeated("k3", "k4") + repeated("v2", "v");
  text += R"(%k = transpose(%k4) {perm = [0,1,3,2]} %s0 = matmul(%q, %k) %s1 = mul(%s0, %root) %s2 = add(%s1, %mask)
    %p = softmax(%s2) %c0 = matmul(%p, %v) %c1 = transpose(%c0) {perm = [0,2,1,3]} %c2 = reshape(%c1, %flat)
    %o = matmul(%c2, %wo) %r = add(%x, %o)
)" + norm("r", "n2");
  text += R"(%g = matmul(%n2, %wg) %gs = sigmoid(%g) %ga = mul(%g, %gs) %u = matmul(%n2, %wu) %h = mul(%ga, %u)
    %d = matmul(%h, %wd) %y = add(%r, %d) return %y })";
  return parse_graph(text, ops());
}

class Decoder : public testing::TestWithParam<const char*> {};

TEST_P(Decoder, IsRecognisedAndRight) {
  const TargetInfo target = parse_target("host");
  Graph graph = block(GetParam());
  const Graph original = graph.clone();
  prepare(graph, {}, nullptr);
  const FusionPlan plan = plan_graph(graph, target, {});
  EXPECT_EQ(plan.module_counts(), (std::map<std::string, int>{{"FusedLinear", 3},
                                                              {"FusedLinearReLU", 1},
                                                              {"FusedMHAInProjection", 1},
                                                              {"FusedScaledDotProductAttention", 1}}));
  Graph fused = apply(graph, plan);
  const std::vector<std::string> notes = shape_for_target(fused, target).notes;
  const Program program = lower_to_program(fused, target);
  for (const std::string& note : program.notes)
    EXPECT_THAT(note, testing::Not(testing::AnyOf(testing::HasSubstr("rms_norm"), testing::HasSubstr("rotary"))))
        << note;
  // norm, projections, two rotary embeddings, attention, output, norm, gated product, the last
  EXPECT_EQ(program.launches.size(), 9u) << print(program);
  const Executable exe = Executable::from_artifact(build_artifact(program, target, {.cache = false}));
  for (const int64_t n : {9, 17}) {
    if (GetParam() != std::string("n") && std::to_string(n) != GetParam()) continue;
    const SymbolValues symbols{{"n", n}};
    const std::vector<Tensor> inputs = random_inputs(original, {.seed = 1, .symbols = symbols}),
                              others = random_inputs(original, {.seed = 2, .symbols = symbols});
    for (const GroupComparison& group : compare_groups(fused, program, exe, inputs, {}))
      EXPECT_TRUE(group.ok) << group.name << " " << group.difference.relative();
    EXPECT_TRUE(compare_outputs(original, exe, inputs, others, {})[0].ok) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Sequence, Decoder, testing::Values("9", "n"));

}  // namespace
}  // namespace opfuse
