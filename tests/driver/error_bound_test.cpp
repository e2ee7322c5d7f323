// Bounds of single regions: 0 where bits are demanded, wide enough for every order of a sum, both sides of a step.
#include "proof/error_bound.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "driver/proof_case.hpp"
#include "proof/drawn_sizes.hpp"

namespace opfuse {
namespace {

/// Of the last launch, on `inputs` in the order of its operands.
BoundedTensor bounds(const std::string& graph, const std::vector<Tensor>& inputs) {
  const ProofCase built(graph);
  const Launch& launch = built.program.launches.back();
  BoundOptions options;
  options.model.folded = false;
  std::vector<Tensor> params(launch.buffers.size());
  for (size_t p = 0, next = 0; p < params.size(); ++p) {
    if (launch.region.params[p].role == ParamRole::input) params[p] = inputs.at(next++);
    if (launch.region.params[p].role == ParamRole::constant)
      params[p] = built.program.buffers[static_cast<size_t>(launch.buffers[p])].constant;
  }
  return bound_errors(launch.region, params, {}, options).results.back();
}

Tensor normal(std::vector<int64_t> sizes, uint64_t seed, double scale = 1) {
  Tensor t(DType::f32, std::move(sizes));
  Random random(seed, "x");
  for (int64_t i = 0; i < t.elements(); ++i) t.set_real(i, scale * random.normal());
  return t;
}

Tensor whole_numbers(std::vector<int64_t> sizes) {
  Tensor t(DType::f32, std::move(sizes));
  for (int64_t i = 0; i < t.elements(); ++i) t.set_real(i, static_cast<double>(i * 7 % 17 - 8));
  return t;
}

Tensor lowest_numbers(std::vector<int64_t> sizes) {
  Tensor t(DType::f32, std::move(sizes));
  for (int64_t i = 0; i < t.elements(); ++i) t.set_real(i, -std::numeric_limits<float>::max());
  return t;
}

int64_t exact_in(const BoundedTensor& t) {
  return std::count_if(t.error.begin(), t.error.end(), [](const Reach& e) { return e.none(); });
}

constexpr const char* kProduct = "graph (%a: f32[1,9,300], %b: f32[1,300,8]) { %y = matmul(%a, %b) return %y }";

TEST(ErrorBound, SumsOfSmallIntegersAreExact) {
  const BoundedTensor y = bounds(kProduct, {whole_numbers({1, 9, 300}), whole_numbers({1, 300, 8})});
  EXPECT_EQ(exact_in(y), y.elements());
}

/// In any order: the sum forwards, backwards and by halves, in f32, is within the bound; a dropped term is not.
TEST(ErrorBound, HoldsForSumsInEveryOrder) {
  const Tensor a = normal({1, 9, 300}, 1), b = normal({1, 300, 8}, 2);
  const BoundedTensor y = bounds(kProduct, {a, b});
  const auto term = [&](int64_t i, int64_t j, int64_t k) {
    return static_cast<float>(a.real(i * 300 + k)) * static_cast<float>(b.real(k * 8 + j));
  };
  for (int64_t i = 0; i < 9; ++i)
    for (int64_t j = 0; j < 8; ++j) {
      float forwards = 0, backwards = 0, halves[2] = {0, 0};
      for (int64_t k = 0; k < 300; ++k) {
        forwards += term(i, j, k);
        backwards += term(i, j, 299 - k);
        halves[k % 2] += term(i, j, k);
      }
      const auto at = static_cast<size_t>(i * 8 + j);
      ASSERT_GT(y.error[at].most(), 0);
      EXPECT_LT(y.error[at].most(), 1e-3);
      for (const float sum : {forwards, backwards, halves[0] + halves[1]})
        EXPECT_LE(std::fabs(sum - y.value[at]), y.error[at].most());
    }
}

TEST(ErrorBound, WhatIsSmallerThanFloatsMayBeZero) {
  const BoundedTensor y = bounds("graph (%x: f32[4,8], %z: f32[4,8]) { %y = mul(%x, %z) return %y }",
                                 {normal({4, 8}, 1, 1e-25), normal({4, 8}, 2, 1e-25)});
  for (size_t i = 0; i < y.value.size(); ++i) EXPECT_GE(y.error[i].most(), std::fabs(y.value[i]));
}

/// exp(89) has no place in f32: x / infinity is 0, and -89 / 4.5e38 a normal number that the interpreter has.
TEST(ErrorBound, WhatIsDividedByAnOverflowMayBeZero) {
  const Tensor x = Tensor::of(DType::f32, {4}, std::vector<double>{-87, -88.8, -89, -92});
  for (const char* silu :
       {"graph (%x: f32[4]) { %y = silu(%x) return %y }",
        "graph (%x: f32[4]) { %n = neg(%x) %e = exp(%n) %r = reciprocal(%e) %y = mul(%x, %r) return %y }"}) {
    const BoundedTensor y = bounds(silu, {x});
    for (int64_t i = 0; i < 4; ++i) {
      const double exact = x.real(i) * std::exp(x.real(i)), off = std::fabs(exact - y.value[static_cast<size_t>(i)]);
      EXPECT_LE(off, y.error[static_cast<size_t>(i)].most()) << silu << x.real(i);
      EXPECT_LE(y.error[static_cast<size_t>(i)].most(), 3e-36);
    }
  }
}

TEST(ErrorBound, AValueThatIsCutToABorderIsOnIt) {
  const BoundedTensor y = bounds(R"(graph (%a: f32[64]) { %e = exp(%a) %n = neg(%e) %z = const dense<0> : f32[1]
    %m = max(%n, %z) %y = floor(%m) return %y })",
                                 {normal({64}, 3)});
  EXPECT_EQ(exact_in(y), y.elements());  // floor(0 - 1e-38) would be -1
}

/// -3.4e38 + s is -3.4e38 in f32, whatever the score: off by the score, not by a rounding of 3.4e38 that would
/// overflow.
TEST(ErrorBound, ASumWithTheLowestNumberIsOffByItsOtherAddend) {
  const char* masked = "graph (%x: f32[4,8], %m: f32[4,8]) { %s = tanh(%x) %y = add(%s, %m) return %y }";
  for (const Reach& e : bounds(masked, {normal({4, 8}, 1), lowest_numbers({4, 8})}).error) {
    EXPECT_GT(e.most(), 0);
    EXPECT_LE(e.most(), 1.001);
  }
}

TEST(ErrorBound, ARowOfWhichAllIsMaskedHasABound) {
  const BoundedTensor y =
      bounds("graph (%x: f32[4,8], %m: f32[4,8]) { %t = tanh(%x) %s = add(%t, %m) %y = softmax(%s) return %y }",
             {normal({4, 8}, 1, 0.01), lowest_numbers({4, 8})});
  for (int64_t i = 0; i < y.elements(); ++i) {
    EXPECT_NEAR(y.value[static_cast<size_t>(i)], 0.125, 1e-12);
    EXPECT_LT(y.error[static_cast<size_t>(i)].most(), 0.1);
  }
}

/// Their maximum is that of -inf and -inf first.
TEST(ErrorBound, RowsThatBeginMaskedByInfinityHaveABound) {
  Tensor mask(DType::f32, {4, 8});
  for (int64_t i = 0; i < 32; ++i) mask.set_real(i, i % 8 < 3 ? -INFINITY : 0);
  const BoundedTensor y =
      bounds("graph (%x: f32[4,8], %m: f32[4,8]) { %t = tanh(%x) %s = add(%t, %m) %y = softmax(%s) return %y }",
             {normal({4, 8}, 1, 0.01), mask});
  for (int64_t i = 0; i < y.elements(); ++i) {
    EXPECT_EQ(y.value[static_cast<size_t>(i)] == 0, i % 8 < 3);
    EXPECT_LT(y.error[static_cast<size_t>(i)].most(), 1e-5);
  }
}

TEST(ErrorBound, TheLowestNumberAsALiteralIsExact) {
  const BoundedTensor y = bounds(R"(graph (%x: f32[4,8]) { %z = const dense<0> : f32[1] %c = less(%x, %z)
    %m = const splat<-3.4028234663852886e38> : f32[] %y = where(%c, %m, %x) return %y })",
                                 {normal({4, 8}, 1)});
  EXPECT_EQ(exact_in(y), y.elements());
}

TEST(ErrorBound, AStepCountsOnlyNearItsThreshold) {
  // 2.5 and 7.5 steps, exactly; then far from a tie.
  const Tensor x = Tensor::of(DType::f32, {4}, std::vector<double>{1.25, 3.75, 1.2, 3.9});
  const char* quantised = "graph (%x: f32[4]) { %s = const splat<0.5> : f32[] %q = quantize_linear(%x, %s) return %q }";
  const BoundedTensor y = bounds(quantised, {x});
  EXPECT_EQ(exact_in(y), 4);
  const BoundedTensor z =
      bounds("graph (%x: f32[4]) { %s = const splat<0.3> : f32[] %q = quantize_linear(%x, %s) return %q }",
             {Tensor::of(DType::f32, {4}, std::vector<double>{0.75, 0.6, 1.35, 1.3})});
  EXPECT_EQ(z.error[0].most(), 1);  // 2.5 steps but for roundings
  EXPECT_TRUE(z.error[1].none());
  EXPECT_EQ(z.error[2].most(), 1);
  EXPECT_TRUE(z.error[3].none());
}

/// A step that a tie decides reaches to one side. Halved, its far end may be a tie again; its near end stays what it
/// is.
TEST(ErrorBound, ATieBehindATieIsFoundAtEitherEnd) {
  const auto codes = [](double x) {
    const BoundedTensor y =
        bounds(R"(graph (%x: f32[1]) { %s = const splat<0.3> : f32[] %half = const splat<0.5> : f32[]
      %q = quantize_linear(%x, %s) %d = dequantize_linear(%q, %s) %h = mul(%d, %half) %y = quantize_linear(%h, %s)
      return %y })",
               {Tensor::of(DType::f32, {1}, std::vector<double>{x})});
    const auto code = static_cast<double>(y.integer[0]);
    return std::pair{code - y.error[0].below, code + y.error[0].above};
  };
  EXPECT_EQ(codes(0.75), std::pair(1.0, 2.0));  // 2.5 steps: 2 or 3, halves 1 or 1.5: 1 or 2
  EXPECT_EQ(codes(1.05), std::pair(1.0, 2.0));  // 3.5: 3 or 4
  EXPECT_EQ(codes(1.2), std::pair(2.0, 2.0));   // 4
  EXPECT_EQ(codes(0.9), std::pair(1.0, 2.0));   // 3, halves 1.5
}

/// 3.5 * 5 / 7 is 2.5 in every kernel, so the position of a pixel that lies on another is on it; 0.3 / 0.1 is below 3.
TEST(ErrorBound, AQuotientWithoutRemainderIsNoTie) {
  const auto reals = [](std::vector<double> v) { return Tensor::of(DType::f64, {3}, v); };
  const BoundedTensor y = bounds("graph (%a: f64[3], %b: f64[3]) { %q = div(%a, %b) %y = floor(%q) return %y }",
                                 {reals({21, 17.5, 0.3}), reals({7, 2.5, 0.1})});
  EXPECT_TRUE(y.error[0].none());
  EXPECT_TRUE(y.error[1].none());
  EXPECT_GE(y.error[2].most(), 0.99);
}

TEST(DrawnSizes, AreOneThenOddThenAnyAndLegal) {
  const auto even = [](const SymbolValues& sizes) { return sizes.at("h") < 8 ? std::string("h is too small") : ""; };
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const DrawnSizes drawn = draw_sizes({"h", "n"}, {{"c", 3}}, seed, even);
    ASSERT_EQ(drawn.sizes.size(), 3u);
    for (const SymbolValues& sizes : drawn.sizes) {
      EXPECT_GE(sizes.at("h"), 8);
      EXPECT_EQ(sizes.at("c"), 3);
    }
    EXPECT_EQ(drawn.sizes[1].at("h") % 2 + drawn.sizes[1].at("n") % 2, 2);
    ASSERT_FALSE(drawn.rejected.empty());
    EXPECT_EQ(drawn.rejected[0], "c=3 h=1 n=1: h is too small");
    const DrawnSizes all = draw_sizes({"h", "n"}, {}, seed, [](const SymbolValues&) { return std::string(); });
    EXPECT_EQ(all.sizes[0], (SymbolValues{{"h", 1}, {"n", 1}}));
  }
}

TEST(DrawnSizes, MeetEqualitiesThatFewDrawsWould) {
  const Dim c = Dim::symbol("c"), d = Dim::symbol("d"), e = Dim::symbol("e");
  const std::vector<DimConstraint> equal = {
      {{DimRule::equal, d, e, "d is e"}, "n", "add", {}},
      {{DimRule::equal, Dim(24), c, "channels"}, "n", "conv", {}},
      {{DimRule::at_least, e, Dim(3), "a window fits"}, "n", "conv", {}},
  };
  const auto check = [](const SymbolValues& s) {
    return s.at("c") == 24 && s.at("d") == s.at("e") && s.at("e") >= 3 ? std::string() : std::string("illegal");
  };
  const DrawnSizes drawn = draw_sizes({"c", "d", "e", "n"}, {}, 1, check, equal);
  EXPECT_EQ(drawn.sizes.size(), 3u);
  const std::vector<DimConstraint> pools = {
      {{DimRule::at_least, floor_div(Dim::symbol("h"), 16), Dim(2), "a window fits"}, "p", "max_pool", {}}};
  const auto fits = [](const SymbolValues& s) { return s.at("h") >= 32 ? std::string() : std::string("too small"); };
  const DrawnSizes grown = draw_sizes({"h", "n"}, {}, 1, fits, pools);
  ASSERT_EQ(grown.sizes.size(), 3u);
  EXPECT_TRUE(grown.rejected.empty());  // the first draw of each round
  EXPECT_EQ(grown.sizes[0], (SymbolValues{{"h", 32}, {"n", 1}}));
  EXPECT_EQ(grown.sizes[1].at("h") % 2, 1);
  const DrawnSizes given = draw_sizes({"c", "d", "n"}, {{"e", 7}}, 1, check, equal);
  ASSERT_EQ(given.sizes.size(), 3u);
  EXPECT_EQ(given.sizes[0].at("d"), 7);
}

}  // namespace
}  // namespace opfuse
