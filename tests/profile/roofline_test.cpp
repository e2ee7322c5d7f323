// The roofline's arithmetic, and that measured limits are plausible on any machine.
#include "profile/roofline.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "target/target_file.hpp"

namespace opfuse {
namespace {

MachineLimits made_up() {
  MachineLimits limits;
  limits.fma_gflops = 100;
  limits.reads = {{1 << 20, 200}, {1 << 30, 20}};
  return limits;
}

TEST(Roofline, ComputeBoundKernelsAreMeasuredAgainstTheFmaRate) {
  const Roofline point = roofline(1e9, 1e5, 0.02, made_up());
  EXPECT_FALSE(point.memory_bound);
  EXPECT_DOUBLE_EQ(point.floor_seconds, 0.01);
  EXPECT_DOUBLE_EQ(point.share, 0.5);
}

TEST(Roofline, MemoryBoundKernelsUseTheLevelThatHoldsTheirBytes) {
  EXPECT_DOUBLE_EQ(roofline(0, 1e6, 1e-5, made_up()).floor_seconds, 1e6 * 1e-9 / 200);
  EXPECT_DOUBLE_EQ(roofline(0, 1e8, 1e-2, made_up()).floor_seconds, 1e8 * 1e-9 / 20);
  EXPECT_DOUBLE_EQ(roofline(0, 1e12, 1, made_up()).floor_seconds, 1e12 * 1e-9 / 20);
  EXPECT_TRUE(roofline(0, 1e8, 1e-2, made_up()).memory_bound);
}

TEST(Roofline, ProductsOfAnotherTypeHaveARateOfTheirOwn) {
  MachineLimits limits = made_up();
  limits.products = {{"int8", "vpdpbusd", 400}};
  EXPECT_DOUBLE_EQ(roofline(1e9, 1e5, 0.02, limits, "int8").floor_seconds, 0.0025);
  EXPECT_DOUBLE_EQ(roofline(1e9, 1e5, 0.02, limits, "bf16").floor_seconds, 0.01);  // not measured: that of f32
}

TEST(Roofline, NothingMeasuredMeansNoShare) {
  EXPECT_EQ(roofline(1e9, 1e6, 0, made_up()).share, 0);
  EXPECT_EQ(roofline(1e9, 1e6, 1, MachineLimits{}).floor_seconds, 0);
}

TEST(MachineLimits, TheFmaRateIsThatOfARealProcessor) {
  const double rate = measure_fma_gflops(1, 0, 0.02);
  EXPECT_GT(rate, 1);
  EXPECT_LT(rate, 2000);
}

TEST(ProductRates, AreThoseOfTheFastestInstructionOfTheTarget) {
  const double f32 = measure_fma_gflops(1, 0, 0.02);
  const std::vector<std::string> all = host_features();
  for (const char* type : {"int8", "bf16"}) {
    const ProductRate rate = measure_product_rate(type, all, 1, 0.02);
    if (std::count(all.begin(), all.end(), "amx-tile")) {
      EXPECT_GT(rate.gops, 4 * f32) << type;
    }
    EXPECT_EQ(measure_product_rate(type, {"sse2"}, 1, 0.02).gops, 0) << type;
  }
  EXPECT_EQ(measure_product_rate("f32", all, 1, 0.02).instruction, "");
  std::vector<std::string> vectors = all;
  std::erase(vectors, "amx-int8");
  const ProductRate rate = measure_product_rate("int8", vectors, 1, 0.02);
  if (std::count(all.begin(), all.end(), "avx512vnni")) {
    EXPECT_EQ(rate.instruction, "vpdpbusd");
    EXPECT_GT(rate.gops, 1.5 * f32);
  }
}

TEST(MachineLimits, NarrowerVectorsAreNoFaster) {
  EXPECT_LT(measure_fma_gflops(1, 16, 0.02), 1.2 * measure_fma_gflops(1, 0, 0.02));
}

TEST(MachineLimits, SmallerWorkingSetsAreNoSlowerToRead) {
  const MachineLimits limits = measure_limits(1);
  ASSERT_EQ(limits.reads.size(), 5u);
  for (size_t i = 1; i < limits.reads.size(); ++i) {
    EXPECT_GE(limits.reads[i - 1].gb_per_s, limits.reads[i].gb_per_s);
    EXPECT_LT(limits.reads[i - 1].bytes, limits.reads[i].bytes);
  }
  EXPECT_GT(limits.reads.back().gb_per_s, 0.1);
}

}  // namespace
}  // namespace opfuse
