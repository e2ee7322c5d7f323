// opfuse::optimize: the choice, the proof, what is refused.
#include "opfuse/optimize.hpp"

#include <gtest/gtest.h>

#include "opfuse/network.hpp"
#include "optimize/candidates.hpp"

namespace opfuse {
namespace {

Model small_model() {
  Network net;
  auto x = net.input("x", {"batch", 16, 12, 12});
  auto y = net.op("relu", {net.batch_norm(net.conv(x, {.out = 16, .kernel = 3}))});
  net.output("y", net.op("relu", {net.add(net.conv(y, {.out = 16, .kernel = 3}), x)}));
  return net.model();
}

OptimizeOptions quick() {
  OptimizeOptions options;
  options.compile.dims = {{"batch", 1}};
  options.compile.threads = 1;
  options.seconds = 0.01;
  return options;
}

TEST(Optimize, ProvesAndMeasuresWhatItChooses) {
  const Optimized result = optimize(small_model(), Target::host(), quick());
  EXPECT_EQ(result.candidates.size(), candidate_rows().size());
  EXPECT_TRUE(result.candidates[result.chosen].skipped.empty());
  EXPECT_EQ(result.groups, 2u);
  EXPECT_TRUE(result.failures.empty());
  EXPECT_EQ(result.fused.launches, 2u);
  EXPECT_EQ(result.unfused.launches, 6u);
  EXPECT_LT(result.fused.bytes, result.unfused.bytes);
  EXPECT_FALSE(result.larger());
  EXPECT_GT(result.time.estimate, 0);
  EXPECT_LE(result.time.low, result.time.high);
  EXPECT_EQ(result.executable.inputs()[0].shape[0], "1");
  EXPECT_NE(result.text().find("as predicted"), std::string::npos);
}

TEST(Optimize, VerdictsFollowTheNumbers) {
  Optimized result = optimize(small_model(), Target::host(), quick());
  result.time = {1.01, 1.05, 1.10};
  EXPECT_TRUE(result.slower());
  EXPECT_FALSE(result.ok());
  EXPECT_NE(result.text().find("SLOWER"), std::string::npos);
  result.time = {0.98, 1.01, 1.04};
  EXPECT_FALSE(result.slower());
  result.fused.arena = result.unfused.memory() + 1;
  EXPECT_TRUE(result.larger());
  EXPECT_NE(result.text().find("FAILED"), std::string::npos);
  result.fused.arena = 0;
  result.failures = {"group g"};
  EXPECT_FALSE(result.ok());
  EXPECT_NE(result.text().find("group g"), std::string::npos);
}

TEST(Optimize, GivenArraysDecideOpenSizes) {
  std::vector<float> x(2 * 16 * 144, 0.5f);
  OptimizeOptions options = quick();
  options.compile.dims.clear();
  options.inputs = {{"x", view(x, {2, 16, 12, 12})}};
  EXPECT_EQ(optimize(small_model(), Target::host(), options).dims, (std::map<std::string, int64_t>{{"batch", 2}}));
}

TEST(Optimize, Refuses) {
  OptimizeOptions open = quick();
  open.compile.dims.clear();
  EXPECT_THROW(optimize(small_model(), Target::host(), open), Error);
  OptimizeOptions unknown = quick();
  float one = 1;
  unknown.inputs = {{"z", view(&one, {1})}};
  EXPECT_THROW(optimize(small_model(), Target::host(), unknown), Error);
}

TEST(Optimize, StopsWhenAsked) {
  OptimizeOptions options = quick();
  options.stop = [] { return true; };
  const Optimized result = optimize(small_model(), Target::host(), options);
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.candidates.size(), 1u);
}

}  // namespace
}  // namespace opfuse
