// Quantised models: each group on what the groups before it stored, one step off on ties only, outputs bit for bit.
#include "driver/compare_chain.hpp"

#include <gtest/gtest.h>

#include "driver/launch_runner.hpp"
#include "driver/rounding_ties.hpp"
#include "interp/random_inputs.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

constexpr const char* kNet = R"(graph (%x: f32[2,3,16,16]) {
  %s = const splat<0.02> : f32[] %z = const splat<3> : i8[] %t = const splat<0.03> : f32[]
  %w = const rand<1> : f32[16,3,3,3] %v = const rand<2> : f32[8,16,1,1]
  %xq = quantize_linear(%x, %s, %z) %xd = dequantize_linear(%xq, %s, %z)
  %c = conv(%xd, %w) {pads = [1,1,1,1]} %r = relu(%c) %rq = quantize_linear(%r, %t, %z) %rd = dequantize_linear(%rq, %t, %z)
  %d = conv(%rd, %v) %e = add(%d, %d) %eq = quantize_linear(%e, %t, %z) %y = dequantize_linear(%eq, %t, %z)
  return %y })";

struct Built {
  Graph fused;
  Program program;
  Executable executable;
};

Built build(const std::string& text) {
  Graph graph = parse_graph(text, ops());
  const TargetInfo target = parse_target("host");
  prepare(graph, {}, nullptr);
  Graph fused = apply(graph, plan_graph(graph, target, {}));
  Program program = lower_to_program(fused, target);
  ArtifactOptions options;
  options.cache = false;
  Executable executable = Executable::from_artifact(build_artifact(program, target, options));
  return {std::move(fused), std::move(program), std::move(executable)};
}

std::vector<Tensor> values_of(RoundingTies& ties, const std::string& name, const std::map<std::string, Tensor>& known,
                              const std::set<std::string>& leaves) {
  std::vector<Tensor> all;
  ties.values(name, known, leaves, [&](const Tensor& t) { return all.push_back(t.clone()), true; });
  return all;
}

TEST(CompareChain, ProvesAQuantisedModel) {
  const Built built = build(kNet);
  ASSERT_TRUE(quantises(built.fused));
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = seed});
    const Comparison c = compare_chain(built.fused, built.program, built.executable, inputs, inputs, {});
    EXPECT_TRUE(c.ok()) << seed;
    EXPECT_TRUE(c.chained);
    EXPECT_EQ(c.outputs[0].difference.max_abs, 0);
    EXPECT_EQ(c.groups.size(), built.program.launches.size());
  }
}

TEST(CompareChain, AStepThatNoTieExplainsFails) {
  const Built built = build(kNet);
  const std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = 1});
  std::map<std::string, Tensor> values{{built.fused.inputs()[0]->name, inputs[0]}};
  RoundingTies ties(built.fused, {}, 2e-5);
  size_t failed = 0, launches = 0;
  for (const bool wrong : {false, true}) {
    LaunchRunner runner(built.program, built.executable, {});
    const LaunchOracle oracle{
        [&](const std::string& name) {
          if (!values.contains(name)) values[name] = ties.value(name, values);
          return &values.at(name);
        },
        [&](const std::string& name, const std::vector<std::string>& read, const LaunchOracle::Take& take) {
          for (Tensor& t : values_of(ties, name, values, {read.begin(), read.end()})) {
            if (wrong) t.set_real(7, t.real(7) + (is_float(t.dtype()) ? 0.03 : 1));
            if (!take(t)) return;
          }
        },
        {}};
    for (size_t i = 0; i < built.program.launches.size(); ++i) {
      const bool ok = runner.run(i, oracle, {}).ok;
      EXPECT_EQ(ok, !wrong) << built.program.launches[i].name;
      failed += !ok, ++launches;
    }
  }
  EXPECT_EQ(2 * failed, launches);
}

TEST(RoundingTies, AnElementMayGoTheOtherWayOnlyNearATie) {
  const Graph graph = parse_graph(R"(graph (%x: f32[6]) {
    %one = const splat<1> : f32[] %s = const splat<0.5> : f32[] %z = const splat<10> : i8[]
    %u = mul(%x, %one) %q = quantize_linear(%u, %s, %z) %y = dequantize_linear(%q, %s, %z) return %y })",
                                  ops());
  // x / 0.5 is 2.5 (a tie, to even: 2), 2.50001 (3), 2.4 (2), 1000.5 (saturates), -3.5 (-4), and the largest finite one
  const Tensor x = Tensor::of(DType::f32, {6}, std::vector<double>{1.25, 1.250005, 1.2, 500.25, -1.75, 1});
  RoundingTies ties(graph, {}, 2e-8);  // 500.25 * 2e-8 = 1e-5 of an error
  const auto values = values_of(ties, "y", {{"x", x}}, {"x"});
  ASSERT_EQ(values.size(), 2u);
  const double base[] = {1, 1.5, 1, 58.5, -2, 1}, other[] = {1.5, 1, 1, 58.5, -1.5, 1};
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(values[0].real(i), base[i]) << i;
    EXPECT_EQ(values[1].real(i), other[i]) << i;
  }
  // Read by the launch itself: only the rounding of one division may decide, so 2.50001 stays.
  const auto read = values_of(ties, "y", {{"u", x}}, {"u"});
  EXPECT_EQ(read[1].real(0), 1.5);
  EXPECT_EQ(read[1].real(1), 1.5);
}

TEST(RoundingTies, ARoundingBehindASumDoesNotCount) {
  const Graph graph = parse_graph(R"(graph (%x: f32[4]) {
    %s = const splat<0.5> : f32[] %u = neg(%x) %q = quantize_linear(%u, %s) %d = dequantize_linear(%q, %s)
    %y = reduce_sum(%d) return %y })",
                                  ops());
  const Tensor x = Tensor::of(DType::f32, {4}, std::vector<double>{-1.25, -1.25, -1, -2});
  RoundingTies ties(graph, {}, 1e-5);
  EXPECT_EQ(values_of(ties, "y", {{"x", x}}, {"x"}).size(), 1u);
}

/// GELU as ONNX Runtime's quantiser leaves it: six roundings, and 1 + erf lies on a tie wherever erf's step is odd.
TEST(CompareChain, ProvesAChainOfSixRoundings) {
  const Built built = build(R"(graph (%x: f32[16,32]) {
    %w = const rand<1> : f32[32,64] %a = const splat<0.03> : f32[] %b = const splat<0.0212> : f32[]
    %e = const splat<0.007874016> : f32[] %f = const splat<0.015748031> : f32[] %z = const splat<0> : i8[]
    %one = const splat<1> : f32[] %half = const splat<0.5> : f32[] %root = const splat<1.4142135> : f32[] %k = const rand<2> : f32[64]
    %m = matmul(%x, %w) %mq = quantize_linear(%m, %a, %z) %md = dequantize_linear(%mq, %a, %z)
    %s = add(%md, %k) %sq = quantize_linear(%s, %a, %z) %sd = dequantize_linear(%sq, %a, %z)
    %d = div(%sd, %root) %r = erf(%d) %rq = quantize_linear(%r, %e, %z) %rd = dequantize_linear(%rq, %e, %z)
    %p = add(%rd, %one) %pq = quantize_linear(%p, %f, %z) %pd = dequantize_linear(%pq, %f, %z)
    %u = mul(%sd, %pd) %uq = quantize_linear(%u, %a, %z) %ud = dequantize_linear(%uq, %a, %z)
    %v = mul(%ud, %half) %vq = quantize_linear(%v, %b, %z) %y = dequantize_linear(%vq, %b, %z)
    return %y })");
  ASSERT_EQ(built.program.launches.size(), 1u);
  const std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = 1});
  const Comparison c = compare_chain(built.fused, built.program, built.executable, inputs, inputs, {});
  EXPECT_TRUE(c.ok());
  EXPECT_GT(c.groups[0].ties, 0);
}

}  // namespace
}  // namespace opfuse
