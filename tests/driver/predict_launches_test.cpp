// Predictions of a program's launches, and how evenly their parts fill threads.
#include "driver/predict_launches.hpp"

#include <gtest/gtest.h>

#include "driver/compilation.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

std::vector<LaunchPrediction> predictions_of(const std::string& text, const std::string& target = "cpu:avx512") {
  Compilation c(parse_graph(text, ops()), parse_target(target), {});
  c.run_to(Milestone::lowered);
  return predict_launches(c.program, c.target);
}

TEST(PredictedLaunches, AreBoundByWhatIsLongest) {
  const auto small = predictions_of("graph (%x: f32[8,8]) { %y = relu(%x) return %y }");
  ASSERT_EQ(small.size(), 1u);
  EXPECT_STREQ(small[0].bound(), "launch");
  EXPECT_EQ(small[0].bytes, 2 * 4 * 64);
  const auto large = predictions_of("graph (%x: f32[4096,4096]) { %y = relu(%x) return %y }");
  EXPECT_STREQ(large[0].bound(), "memory");
  const auto functions =
      predictions_of("graph (%x: f32[512,512]) { %a = exp(%x) %b = tanh(%a) %c = erf(%b) %y = log(%c) return %y }");
  EXPECT_STREQ(functions[0].bound(), "instructions");
  EXPECT_GT(functions[0].microseconds, functions[0].instructions);
  EXPECT_STREQ(predictions_of("graph (%x: f32[8,8]) { %y = relu(%x) return %y }", "cuda:sm_90")[0].bound(), "launch");
}

TEST(PredictedLaunches, CountWhatIsComputedForEachTap) {
  const std::string pool = "%y = average_pool(%a) {kernel_shape=[3,3]} @\"pool\" return %y }";
  const auto one = [&](const std::string& front) {
    Compilation c(parse_graph("graph (%x: f32[1,32,56,56]) { " + front + pool, ops()), parse_target("cpu:avx512"),
                  CompilationOptions{.plan = {.fuse = {{"front", "pool"}}}});
    c.run_to(Milestone::lowered);
    EXPECT_EQ(c.program.launches.size(), 1u);
    return predict_launches(c.program, c.target)[0].instructions;
  };
  const double plain = one("%a = neg(%x) @\"front\"\n");
  EXPECT_GT(one("%a = exp(%x) @\"front\"\n"), 3 * plain);
  EXPECT_GT(one("%a = transpose(%x) {perm=[0,1,3,2]} @\"front\"\n"), 3 * plain) << "gathered";
}

/// Measured (bench/log/costs.md): a turned row is 3 times as fast behind a transpose, functions in front of a maximum
/// lose what the map between them would cost; a row and a map in front of a pool gain.
TEST(PredictedLaunches, AreOneOnlyWhereThatGains) {
  const std::string norm = "%y = layer_norm(%t, %s, %s) {axis=-1} return %y }",
                    scale = " %s = const rand<1> : f32[32] ";
  const std::string pool = "%y = max_pool(%t) {kernel_shape=[2,2], strides=[2,2]} return %y }";
  const auto launches = [](const std::string& text) { return predictions_of(text).size(); };
  EXPECT_EQ(launches("graph (%x: f32[1,32,4096]) {" + scale + "%t = transpose(%x) {perm=[0,2,1]} " + norm), 2u);
  EXPECT_EQ(launches("graph (%x: f32[1,4096,32]) {" + scale + "%t = relu(%x) " + norm), 1u);
  EXPECT_EQ(launches("graph (%x: f32[1,32,56,56]) { %t = tanh(%x) " + pool), 2u);
  EXPECT_EQ(launches("graph (%x: f32[1,32,56,56]) { %t = relu(%x) " + pool), 1u);
}

TEST(PredictedLaunches, FillThreadsByTheirParts) {
  EXPECT_DOUBLE_EQ(balance_of(16, 16), 1);
  EXPECT_DOUBLE_EQ(balance_of(8, 16), 0.5);
  EXPECT_DOUBLE_EQ(balance_of(17, 16), 17.0 / 32);
  EXPECT_DOUBLE_EQ(balance_of(1, 1), 1);
  std::vector<LaunchPrediction> two(2);
  two[0].microseconds = two[1].microseconds = 10;
  EXPECT_DOUBLE_EQ(predicted_balance(two, {16, 16}, 16), 1);
  EXPECT_DOUBLE_EQ(predicted_balance(two, {16, 1}, 16), 20.0 / (10 + 160));
  two[1].start = 8;  // no part shares it
  EXPECT_DOUBLE_EQ(predicted_balance(two, {16, 1}, 16), 12.0 / (10 + 32));
}

/// Image by image, or step by step: what a launch takes for all of them.
TEST(PredictedLaunches, CountAllImagesOfABody) {
  const auto of = [](const std::string& images) {
    Compilation c(parse_graph("graph (%x: f32[" + images +
                                  ",56,384]) { %w = const rand<1> : f32[384,96]\n"
                                  "%s = const rand<2> : f32[96] %m = matmul(%x, %w) @\"m\" %y = layer_norm(%m, %s, %s) "
                                  "{axis=-1} @\"y\" return %y }",
                              ops()),
                  parse_target("cpu:avx2"), CompilationOptions{.plan = {.no_fuse = {{"m", "y"}}}});
    c.run_to(Milestone::lowered);
    return std::pair(predict_launches(c.program, c.target), c.program.bodies.size());
  };
  const auto [one, none] = of("1");
  const auto [many, bodies] = of("64");
  ASSERT_EQ(none, 0u);
  ASSERT_EQ(bodies, 1u) << "else this tests nothing";
  ASSERT_EQ(many.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(many[i].microseconds, 64 * one[i].microseconds, 0.5 * many[i].microseconds);
    EXPECT_GT(many[i].bytes, 60 * 56 * 96 * 4);
  }
  EXPECT_LT(many[0].bytes, 64 * one[0].bytes) << "weights are there once";
}

/// Without VNNI two products of a pair are one of floats.
TEST(PredictedLaunches, CodesInPairsAreFasterThanFloats) {
  const auto codes = predictions_of(
      "graph (%x: u8[256,512]) { %w = const rand<1> : i8[512,512] %y = matmul_integer(%x, %w) return %y }", "cpu:avx2");
  const auto floats = predictions_of(
      "graph (%x: f32[256,512]) { %w = const rand<1> : f32[512,512] %y = matmul(%x, %w) return %y }", "cpu:avx2");
  double a = 0, b = 0;
  for (const LaunchPrediction& p : codes) a += p.instructions;
  for (const LaunchPrediction& p : floats) b += p.instructions;
  EXPECT_LT(a, 0.7 * b);
  EXPECT_GT(a, 0.4 * b);
}

TEST(PredictedLaunches, FollowTheCostsOfTheTarget) {
  const std::string text = "graph (%x: f32[512,512]) { %y = exp(%x) return %y }";
  Compilation c(parse_graph(text, ops()), parse_target("cpu:avx512"), {});
  c.run_to(Milestone::lowered);
  TargetInfo slow = c.target;
  slow.costs.function *= 10;
  EXPECT_GT(predict_launches(c.program, slow)[0].instructions,
            2 * predict_launches(c.program, c.target)[0].instructions);
}

}  // namespace
}  // namespace opfuse
