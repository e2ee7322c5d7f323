// Self-attention from projections to merged heads, through the whole compiler: one kernel for everything between the
// projections and the output, fixed and open lengths, values of the interpreter at any number of threads.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "driver/pipeline.hpp"
#include "driver/shape_for_target.hpp"
#include "fusion/plan.hpp"
#include "interp/random_inputs.hpp"
#include "ops/registry.hpp"
#include "proof/compare.hpp"
#include "testing/runs_here.hpp"

namespace opfuse {
namespace {

struct Attention {
  std::string batch = "2", tokens = "17";
  int heads = 4, size = 16;
  std::string scores = "%s4 = add(%s3, %mask)";  ///< %s4 of %s3 and %mask, an f32 of [batch, 1, 1, tokens]
  std::string weights = "%p = softmax(%s4)";     ///< %p of %s4
};

Graph attention(const Attention& a) {
  const int width = a.heads * a.size;
  std::string text = fmt::format(
      "graph (%x: f32[{0},{1},{2}], %mask: f32[{0},1,1,{1}]) {{\n %heads = const dense<0,0,{3},{4}> : i64[4]\n"
      " %flat = const dense<0,0,{2}> : i64[3]\n %root = const splat<{5}> : f32[]\n %low = const splat<-3.4e38> : "
      "f32[]\n"
      " %zero = const splat<0> : f32[]\n %none = const splat<-inf> : f32[]\n %keys = const dense<3> : i64[1]\n %wo = "
      "const rand<9> : f32[{2},{2}]\n",
      a.batch, a.tokens, width, a.heads, a.size, std::sqrt(a.size));
  for (const char* c : {"q", "k", "v"})
    text += fmt::format(
        " %w{0} = const rand<{1}> : f32[{2},{2}]\n %b{0} = const rand<{3}> : f32[{2}]\n %m{0} = matmul(%x, %w{0})\n"
        " %a{0} = add(%m{0}, %b{0})\n %r{0} = reshape(%a{0}, %heads)\n %{0} = transpose(%r{0}) {{perm=[{4}]}}\n",
        c, int(c[0]), width, int(c[0]) + 1, c[0] == 'k' ? "0,2,3,1" : "0,2,1,3");
  text += " %s2 = matmul(%q, %k)\n %s3 = div(%s2, %root)\n " + a.scores + "\n " + a.weights +
          "\n %y = matmul(%p, %v)\n %t = transpose(%y) {perm=[0,2,1,3]}\n %m = reshape(%t, %flat)\n"
          " %o = matmul(%m, %wo)\n return %o\n}";
  return parse_graph(text, ops());
}

struct Built {
  Graph fused;
  Program program;
  Executable executable;
};

Built build(Graph graph, const TargetInfo& target) {
  prepare(graph, {}, nullptr);
  Graph fused = apply(graph, plan_graph(graph, target, {}));
  shape_for_target(fused, target);
  Program program = lower_to_program(fused, target);
  ArtifactOptions options;
  options.cache = false;
  Executable executable = Executable::from_artifact(build_artifact(program, target, options));
  return {std::move(fused), std::move(program), std::move(executable)};
}

std::vector<TargetInfo> runnable() {
  std::vector<TargetInfo> all;
  for (const std::string& name : known_targets())
    if (const TargetInfo target = parse_target(name); runs_here(target)) all.push_back(target);
  return all;
}

const Launch* attention_launch(const Program& program) {
  const Launch* found = nullptr;
  for (const Launch& launch : program.launches)
    if (launch.region.stages.size() == 3) found = &launch;
  return found;
}

void expect_equal(const Built& built, const SymbolValues& symbols) {
  const std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = 1, .symbols = symbols});
  for (const GroupComparison& group : compare_groups(built.fused, built.program, built.executable, inputs, {}))
    EXPECT_TRUE(group.ok) << group.name << ": " << group.difference.relative() << ", " << group.real.unclaimed << " of "
                          << group.real.elements << " unclaimed, " << group.real.of_bound << " of the bound";
}

TEST(AttentionModel, OneProductForThreeProjectionsOneAttentionAndTheOutputAreAllKernels) {
  for (const TargetInfo& target : runnable()) {
    const Built built = build(attention({}), target);
    EXPECT_EQ(built.program.launches.size(), 3u) << print(built.program);
    ASSERT_NE(attention_launch(built.program), nullptr);
    EXPECT_TRUE(built.program.notes.empty()) << built.program.notes.front();
    expect_equal(built, {});
  }
}

TEST(AttentionModel, ChosenScoresAndGuardedWeights) {
  Attention a;
  a.scores = "%c = greater(%mask, %zero)\n %s4 = where(%c, %s3, %low)";
  a.weights = "%p0 = softmax(%s4)\n %n = is_nan(%p0)\n %p = where(%n, %zero, %p0)";
  for (const TargetInfo& target : runnable()) {
    const Built built = build(attention(a), target);
    ASSERT_NE(attention_launch(built.program), nullptr) << print(built.program);
    expect_equal(built, {});
  }
}

/// ONNX's Attention: a row whose scores are all -inf gives 0. Its maximum is the softmax's own.
TEST(AttentionModel, RowsWithoutKeysAreZeros) {
  Attention a;
  a.scores = "%c = greater(%mask, %zero)\n %bias = where(%c, %zero, %none)\n %s4 = add(%s3, %bias)";
  a.weights =
      "%top = reduce_max(%s4, %keys)\n %empty = equal(%top, %none)\n %p0 = softmax(%s4)\n %p = where(%empty, %zero, "
      "%p0)";
  for (const char* tokens : {"17", "n"})
    for (const TargetInfo& target : runnable()) {
      a.tokens = tokens;
      const Built built = build(attention(a), target);
      ASSERT_NE(attention_launch(built.program), nullptr) << print(built.program);
      EXPECT_TRUE(built.program.notes.empty()) << built.program.notes.front();
      expect_equal(built, {{"n", 17}});
      std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = 1, .symbols = {{"n", 17}}});
      for (int64_t i = 0; i < inputs[1].elements(); ++i) inputs[1].set_real(i, i < 17 ? -1 : 1);  // image 0: no keys
      const Tensor result = run_executable(built.executable, inputs, {})[0];
      const int64_t half = result.elements() / 2;
      for (int64_t i = 0; i < half; ++i) ASSERT_EQ(result.real(i), 0) << i;
      EXPECT_NE(result.real(half), 0);
    }
}

TEST(AttentionModel, OpenBatchAndLength) {
  Attention a;
  a.batch = "b", a.tokens = "n";
  for (const TargetInfo& target : runnable()) {
    const Built built = build(attention(a), target);
    ASSERT_NE(attention_launch(built.program), nullptr) << print(built.program);
    for (const auto& [batch, tokens] : {std::pair{1, 1}, {2, 5}, {3, 64}, {1, 300}})
      expect_equal(built, {{"b", batch}, {"n", tokens}});
  }
}

/// Many convolutions want the result in blocks of channels; attention writes no padding lanes, so it stays dense.
TEST(AttentionModel, ItsResultStaysDenseBeforeConvolutions) {
  std::string text =
      "graph (%q: f32[1,21,7,5], %k: f32[1,21,5,7], %v: f32[1,21,7,5]) {\n %s = matmul(%q, %k)\n %p = softmax(%s)\n"
      " %y = matmul(%p, %v)\n";
  for (int i = 0; i < 6; ++i)
    text += fmt::format(
        " %w{0} = const rand<{0}> : f32[32,21,3,3]\n %c{0} = conv(%y, %w{0}) {{pads=[1,1,1,1], kernel_shape=[3,3]}}\n",
        i);
  for (const TargetInfo& target : runnable()) {
    const Built built = build(parse_graph(text + " return %c0, %c1, %c2, %c3, %c4, %c5\n}", ops()), target);
    const Launch* launch = attention_launch(built.program);
    ASSERT_NE(launch, nullptr) << print(built.program);
    EXPECT_TRUE(built.program.buffers[static_cast<size_t>(launch->buffers.back())].layout.blocks.empty())
        << print(built.program);
    expect_equal(built, {});
  }
}

/// The map of the result leaves out the axis that lanes run along.
TEST(AttentionModel, HeadsOfOneFeature) {
  for (const TargetInfo& target : runnable())
    for (const char* batch : {"2", "n"}) {
      const Built built =
          build(parse_graph(fmt::format(R"(graph (%q: f32[{0},1,23,1], %k: f32[{0},1,1,5], %v: f32[{0},1,5,1]) {{
        %s = matmul(%q, %k) %p = softmax(%s) %c = matmul(%p, %v) %y = transpose(%c) {{perm=[0,2,1,3]}} return %y
      }})",
                                        batch),
                            ops()),
                target);
      ASSERT_NE(attention_launch(built.program), nullptr);
      for (const int64_t n : {2, 3})
        if (n == 2 || *batch == 'n') expect_equal(built, *batch == 'n' ? SymbolValues{{"n", n}} : SymbolValues{});
    }
}

TEST(AttentionModel, ThreadsGiveTheSameBits) {
  const Built built = build(attention({"3", "70", 5, 24}), host_target());
  const std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = 3});
  const Tensor one = run_executable(built.executable, inputs, {.threads = 1})[0];
  for (int threads : {2, 3, 5})
    EXPECT_TRUE(run_executable(built.executable, inputs, {.threads = threads})[0].same_bits(one)) << threads;
}

/// One rounding, of the result: weights that were stored as halves would be off by two units.
TEST(AttentionModel, HalvesAreOneKernelWithScoresAndWeightsInSinglePrecision) {
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const char* keys : {"24", "n"})
      for (const TargetInfo& target : runnable()) {
        const Built built =
            build(parse_graph(fmt::format(R"(graph (%q: {0}[2,3,9,8], %k: {0}[2,3,8,{1}], %v: {0}[2,3,{1},8]) {{
          %s = matmul(%q, %k) %p = softmax(%s) %y = matmul(%p, %v) return %y
        }})",
                                          name_of(dtype), keys),
                              ops()),
                  target);
        ASSERT_NE(attention_launch(built.program), nullptr) << target.name << " " << name_of(dtype);
        EXPECT_TRUE(built.program.notes.empty()) << built.program.notes.front();
        const SymbolValues sizes = *keys == 'n' ? SymbolValues{{"n", 24}} : SymbolValues{};
        expect_equal(built, sizes);
        const std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = 1, .symbols = sizes});
        const Tensor got = run_executable(built.executable, inputs)[0], want = interpret(built.fused, inputs)[0];
        const double half_unit = dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
        for (int64_t i = 0; i < got.elements(); ++i)
          ASSERT_LE(std::abs(got.real(i) - want.real(i)), 1.01 * half_unit * std::abs(want.real(i)) + 1e-6) << i;
      }
}

TEST(AttentionModel, DoublesRunAsSeveralKernelsWithTheReason) {
  Graph graph = parse_graph(
      "graph (%q: f64[2,5,4], %k: f64[2,4,5], %v: f64[2,5,4]) {\n %s = matmul(%q, %k)\n %p = softmax(%s)\n"
      " %y = matmul(%p, %v)\n return %y\n}",
      ops());
  const Built built = build(std::move(graph), host_target());
  EXPECT_EQ(attention_launch(built.program), nullptr);
  ASSERT_EQ(built.program.notes.size(), 1u);
  EXPECT_NE(built.program.notes[0].find("attention: the scores are not a sum of f32 products"), std::string::npos)
      << built.program.notes[0];
  expect_equal(built, {});
}

}  // namespace
}  // namespace opfuse
