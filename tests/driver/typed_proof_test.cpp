// Numbers that are right in the kernel's own type and far from the exact ones: scores that a mask swallows, overflow.
// Right kernels pass, an error planted in such elements alone is caught.
#include <gtest/gtest.h>

#include <cmath>

#include "driver/proof_case.hpp"

namespace opfuse {
namespace {

constexpr const char* kAttention = R"(graph (%q: f32[2,9,16], %k: f32[2,16,11], %v: f32[2,11,16], %m: f32[2,1,11]) {
  %s = matmul(%q, %k) %h = const splat<0.25> : f32[] %t = mul(%s, %h) %a = add(%t, %m) %p = softmax(%a) %y = matmul(%p, %v)
  return %y })";
constexpr const char* kSoftmax =
    "graph (%x: f32[4,9], %m: f32[4,9]) { %a = add(%x, %m) %y = softmax(%a) {axis=-1} return %y }";
constexpr const char* kLogSoftmax =
    "graph (%x: f32[4,9], %m: f32[4,9]) { %t = tanh(%x) %a = add(%t, %m) %y = log_softmax(%a) {axis=-1} return %y }";

/// Of the first row, or matrix, everything is masked, of the others the last keys.
std::vector<Tensor> masked(const Graph& graph, double fill) {
  std::vector<Tensor> inputs = random_inputs(graph, {.seed = 1});
  Tensor& mask = inputs.back();
  const int64_t keys = mask.sizes().back();
  for (int64_t i = 0; i < mask.elements(); ++i) mask.set_real(i, i < keys || i % keys > 6 ? fill : 0);
  return inputs;
}

std::vector<GroupComparison> compared(const ProofCase& built, const Executable& executable,
                                      const std::vector<Tensor>& inputs) {
  return compare_groups(built.fused, built.program, executable, inputs, {});
}

/// Off by `factor` at the first coordinate of axis 0 alone.
Executable wrong_in_first(const ProofCase& built, size_t launch, double factor) {
  return built.with_wrong(launch, [&](Launch& wrong) {
    Expr& value = wrong.region.stages.back().outputs.back().value;
    const Expr first = Expr::make(ExprOp::eq, {Expr::coord(0), Expr::integer(DType::i64, 0)});
    const Expr off = Expr::make(ExprOp::mul, {value, Expr::constant(value.dtype(), factor)});
    value = Expr::make(ExprOp::select, {first, off, value});
  });
}

struct MaskCase {
  const char* text;
  double fill;
};

class MaskedRows : public testing::TestWithParam<MaskCase> {};

TEST_P(MaskedRows, AreJudgedAndTheirErrorsCaught) {
  const auto& [text, fill] = GetParam();
  const ProofCase built(text);
  const std::vector<Tensor> inputs = masked(built.fused, fill);
  int64_t typed = 0;
  for (const GroupComparison& g : compared(built, built.executable, inputs)) {
    EXPECT_TRUE(g.ok) << g.name << ": real " << g.real.of_bound << " drawn " << g.exact.of_bound;
    EXPECT_EQ(g.real.not_judged(), 0) << g.name;
    typed += g.real.typed;
  }
  EXPECT_EQ(typed > 0, fill == -1e9) << "doubles swallow scores beside the lowest f32 too";
  const size_t last = built.program.launches.size() - 1;
  for (const double factor : {0.0, 0.75, 1 + 0x1p-9})
    EXPECT_FALSE(compared(built, wrong_in_first(built, last, factor), inputs)[last].ok) << factor;
}

const MaskCase kMasks[] = {
    {kAttention, -1e4},  {kAttention, -1e9},  {kAttention, -3.4028234663852886e38},
    {kSoftmax, -1e4},    {kSoftmax, -1e9},    {kSoftmax, -3.4028234663852886e38},
    {kLogSoftmax, -1e4}, {kLogSoftmax, -1e9}, {kLogSoftmax, -3.4028234663852886e38},
};
INSTANTIATE_TEST_SUITE_P(Masks, MaskedRows, testing::ValuesIn(kMasks));

/// The mask is made in the group, so drawn numbers have it too.
TEST(TypedProof, MasksOfIntegersAreJudgedOnDrawnNumbersToo) {
  const ProofCase built(R"(graph (%x: f32[4,9], %m: i64[4,9]) { %f = cast(%m) {to = f32} %o = const splat<1> : f32[]
    %n = const splat<-1000000000> : f32[] %i = sub(%o, %f) %k = mul(%i, %n) %a = add(%x, %k) %y = softmax(%a) return %y })");
  std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = 1});
  for (int64_t i = 0; i < inputs[1].elements(); ++i) inputs[1].set_integer(i, i >= 9 && i % 9 < 5);
  const GroupComparison group = compared(built, built.executable, inputs).back();
  EXPECT_TRUE(group.ok);
  EXPECT_GT(group.real.typed, 0);
  EXPECT_GT(group.exact.typed, 0);
  EXPECT_EQ(group.exact.not_judged(), 0);
  const size_t last = built.program.launches.size() - 1;
  EXPECT_FALSE(compared(built, wrong_in_first(built, last, 0.5), inputs)[last].ok);
}

/// Squares of 1e20 have no place in f32: the norm of such a row is its bias, and every kernel says so.
TEST(TypedProof, AnOverflowBehindWhichNumbersAreFiniteIsJudged) {
  const ProofCase built(R"(graph (%x: f32[4,24]) { %s = const rand<1> : f32[24] %b = const rand<2> : f32[24]
    %y = layer_norm(%x, %s, %b) {axis=-1} return %y })");
  std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = 1});
  for (int64_t i = 0; i < 24; ++i) inputs[0].set_real(i, 1e20 * inputs[0].real(i));
  const GroupComparison group = compared(built, built.executable, inputs)[0];
  EXPECT_TRUE(group.ok) << group.real.got << " not " << group.real.want << " +- " << group.real.bound;
  EXPECT_GT(group.real.typed, 0);
  EXPECT_FALSE(compared(built, wrong_in_first(built, 0, 1.01), inputs)[0].ok);
}

/// exp(exp(6)) is infinite in f32, its quotient by a sum of such NaN. A kernel that stores a number is wrong.
TEST(TypedProof, WhatOverflowsInEveryKernelIsRight) {
  for (const char* text :
       {"graph (%x: f32[4,9]) { %e = exp(%x) %f = exp(%e) %y = softmax(%f) return %y }",
        "graph (%x: f32[4,9]) { %e = exp(%x) %f = exp(%e) %g = floor(%f) %y = sub(%f, %g) return %y }",
        "graph (%x: f32[4,9]) { %e = exp(%x) %f = exp(%e) %y = reduce_sum(%f) {axes=[-1]} return %y }"}) {
    const ProofCase built(text);
    std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = 1});
    for (int64_t i = 0; i < 9; ++i) inputs[0].set_real(i, 6 + 0.01 * static_cast<double>(i));
    const std::vector<GroupComparison> groups = compared(built, built.executable, inputs);
    EXPECT_TRUE(groups[0].ok) << text;
    EXPECT_GT(groups[0].real.typed, 0) << text;
    const Executable wrong = built.with_wrong(0, [](Launch& launch) {
      Expr& value = launch.region.stages.back().outputs.back().value;
      value = Expr::constant(value.dtype(), 0.5);
    });
    EXPECT_FALSE(compared(built, wrong, inputs)[0].ok) << text;
  }
}

/// The root of a rest of either sign is NaN or nearly 0.
TEST(TypedProof, ARootOfARestMayBeNan) {
  const ProofCase built(
      R"(graph (%x: f32[8,33]) { %m = reduce_mean(%x) {axes=[-1]} %q = mul(%x, %x) %n = reduce_mean(%q) {axes=[-1]}
    %s = mul(%m, %m) %d = sub(%n, %s) %y = sqrt(%d) return %y })");
  std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = 1});
  for (int64_t row = 0; row < 8; row += 2)
    for (int64_t i = 0; i < 33; ++i) inputs[0].set_real(row * 33 + i, 0.1 * static_cast<double>(1 + row));
  for (const GroupComparison& group : compared(built, built.executable, inputs))
    EXPECT_EQ(group.real.outside, 0) << group.real.got << " not " << group.real.want;
}

}  // namespace
}  // namespace opfuse
