// Random inputs are valid, structured, and the same for the same seed.
#include "interp/random_inputs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/fail.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

std::pair<double, double> range_of(const Tensor& t) {
  double low = t.real(0), high = low;
  for (int64_t i = 0; i < t.elements(); ++i) {
    low = std::min(low, t.real(i));
    high = std::max(high, t.real(i));
  }
  return {low, high};
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.diagnostic().name;
  }
  return "none";
}

TEST(RandomInputs, AreTheSameForTheSameSeedOnly) {
  Graph g;
  g.add_input("x", {DType::f32, Shape{1, 3, 16, 16}});
  g.add_input("y", {DType::f32, Shape{1, 3, 16, 16}});
  const auto a = random_inputs(g, {.seed = 1}), b = random_inputs(g, {.seed = 1}), c = random_inputs(g, {.seed = 2});
  EXPECT_TRUE(a[0].same_bits(b[0]));
  EXPECT_FALSE(a[0].same_bits(c[0]));
  EXPECT_FALSE(a[0].same_bits(a[1])) << "inputs of different names differ";
}

TEST(RandomInputs, ImagesHaveLowFrequenciesAndContrast) {
  Graph g;
  g.add_input("image", {DType::f32, Shape{2, 3, 64, 64}});
  const Tensor x = random_inputs(g)[0];
  for (int64_t plane = 0; plane < 6; ++plane) {
    double sum = 0, square = 0, step = 0;
    for (int64_t i = 0; i < 4096; ++i) {
      const double v = x.real(plane * 4096 + i);
      sum += v;
      square += v * v;
      if (i % 64 != 63) step += std::pow(x.real(plane * 4096 + i + 1) - v, 2);
    }
    const double variance = square / 4096 - std::pow(sum / 4096, 2);
    EXPECT_GT(variance, 0.1) << "plane " << plane << " is flat";
    EXPECT_LT(step / 4032, variance) << "neighbouring pixels of plane " << plane << " are unrelated";
  }
}

TEST(RandomInputs, IndicesStayInsideTheirTables) {
  Graph g;
  Value* ids = g.add_input("ids", {DType::i64, Shape{4, Dim::symbol("n")}});
  Value* flat = g.add_node(op_named("flatten"), AttrMap{}, {ids})->output();
  Value* cast = g.add_node(op_named("cast"), AttrMap{{"to", DType::i32}}, {flat})->output();
  g.set_outputs({cast});
  EXPECT_EQ(indexed_rows(*ids, {}), std::nullopt);
  if (!ops().find("gather")) GTEST_SKIP() << "no gather";
  Value* big = g.add_constant(Tensor(DType::f32, {1000, 2}));
  Value* small = g.add_constant(Tensor(DType::f32, {2, 30}));
  g.set_outputs({g.add_node(op_named("gather"), AttrMap{}, {big, cast})->output(),
                 g.add_node(op_named("gather"), AttrMap{{"axis", int64_t{1}}}, {small, flat})->output()});
  EXPECT_EQ(indexed_rows(*ids, {}), 30);
  const Tensor x = random_inputs(g, {.symbols = {{"n", 100}}})[0];
  EXPECT_EQ(x.sizes(), (std::vector<int64_t>{4, 100}));
  EXPECT_EQ(range_of(x), (std::pair<double, double>{0, 29}));
}

TEST(RandomInputs, MasksAreRunsOfOnesThenZeros) {
  Graph g;
  g.add_input("attention_mask", {DType::i64, Shape{8, 32}});
  g.add_input("flags", {DType::boolean, Shape{8, 32}});
  for (const Tensor& x : random_inputs(g)) {
    for (int64_t row = 0; row < 8; ++row) {
      EXPECT_EQ(x.integer(row * 32), 1) << "no row is masked out";
      for (int64_t i = 1; i < 32; ++i) EXPECT_LE(x.integer(row * 32 + i), x.integer(row * 32 + i - 1));
    }
  }
}

TEST(RandomInputs, RangesOverride) {
  Graph g;
  g.add_input("x", {DType::f32, Shape{1000}});
  g.add_input("k", {DType::i32, Shape{1000}});
  const auto in = random_inputs(g, {.ranges = {{"x", {2, 3}}, {"k", {-4, 4}}}});
  EXPECT_GE(range_of(in[0]).first, 2);
  EXPECT_LE(range_of(in[0]).second, 3);
  EXPECT_EQ(range_of(in[1]), (std::pair<double, double>{-4, 4}));
  EXPECT_EQ(error_of([&] { random_inputs(g, {.ranges = {{"z", {0, 1}}}}); }), "unknown_name");
  EXPECT_EQ(error_of([&] { random_inputs(g, {.ranges = {{"x", {1, 0}}}}); }), "bad_option");
}

TEST(RandomInputs, NeedEverySymbol) {
  Graph g;
  g.add_input("x", {DType::f32, Shape{Dim::symbol("batch")}});
  EXPECT_EQ(error_of([&] { random_inputs(g); }), "missing_dimension");
  EXPECT_EQ(random_inputs(g, {.symbols = {{"batch", 0}}})[0].elements(), 0);
}

TEST(Random, NormalHasMeanZeroAndDeviationOne) {
  Random random(5, "normal");
  double sum = 0, square = 0;
  for (int i = 0; i < 20000; ++i) {
    const double v = random.normal();
    sum += v;
    square += v * v;
  }
  EXPECT_NEAR(sum / 20000, 0, 0.03);
  EXPECT_NEAR(square / 20000, 1, 0.04);
}

}  // namespace
}  // namespace opfuse
