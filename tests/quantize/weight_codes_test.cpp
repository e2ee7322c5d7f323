// Codes of weights: windows keep their sums, pairs fit 16 bits where that is asked for, everything else is rounded to
// the nearest.
#include "quantize/weight_codes.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "quantize/pair_codes.hpp"

namespace opfuse::quantization {
namespace {

Tensor drawn(std::vector<int64_t> sizes, uint32_t seed) {
  Tensor t(DType::f32, std::move(sizes));
  for (float& v : t.mutable_view<float>()) {
    seed = seed * 1664525u + 1013904223u;
    v = static_cast<float>(seed >> 8) / float(1 << 24) - 0.4f;
  }
  return t;
}

/// Largest |sum of (code - exact)| of a window, in steps, and the largest |code - exact|.
struct Errors {
  double sum = 0, each = 0;
};
Errors errors_of(const Tensor& w, const WeightCodes& made, size_t axis, int64_t taps) {
  Errors most;
  for (int64_t from = 0; from < w.elements(); from += taps) {
    double sum = 0;
    for (int64_t i = from; i < from + taps; ++i) {
      const int64_t channel = axis == 0 ? i / (w.elements() / w.dim(0)) : i / taps % w.dim(1);
      const double e = double(made.codes.integer(i)) - w.real(i) / made.scales.real(channel);
      sum += e, most.each = std::max(most.each, std::fabs(e));
    }
    most.sum = std::max(most.sum, std::fabs(sum));
  }
  return most;
}

TEST(WeightCodes, AWindowKeepsItsSum) {
  const Tensor w = drawn({8, 4, 3, 3}, 7);
  const Errors e = errors_of(w, weight_codes(w, 0), 0, 9);
  EXPECT_LE(e.sum, 0.51 + 0.5);  // one step of the last code, less where that pays
  EXPECT_LT(e.each, 1.0);
  EXPECT_GT(e.each, 0.5);  // some were not rounded to the nearest
  EXPECT_GT(weight_codes(w, 0).moved, 8);
  const WeightCodes nearest = weight_codes(w, 0, {.window_sums = false});
  EXPECT_LE(errors_of(w, nearest, 0, 9).each, 0.5001);
  EXPECT_EQ(nearest.moved, 0);
  // rounded to the nearest, windows are as far off as nine independent errors
  double worst = 0;
  const WeightCodes made = weight_codes(w, 0);
  for (int64_t from = 0; from < w.elements(); from += 9) {
    double sum = 0;
    for (int64_t i = from; i < from + 9; ++i) {
      const double exact = w.real(i) / made.scales.real(i / 36);
      sum += std::nearbyint(exact) - exact;
    }
    worst = std::max(worst, std::fabs(sum));
  }
  EXPECT_GT(worst, 1.5);
}

TEST(WeightCodes, OthersAreRoundedToTheNearest) {
  const Tensor pointwise = drawn({8, 16, 1, 1}, 3), linear = drawn({16, 8}, 4);
  EXPECT_LE(errors_of(pointwise, weight_codes(pointwise, 0), 0, 1).each, 0.5001);
  EXPECT_LE(errors_of(linear, weight_codes(linear, 1), 1, 1).each, 0.5001);
}

TEST(WeightCodes, FullCodesDoNotOverflow) {
  Tensor w(DType::f32, {1, 1, 3, 3});
  for (float& v : w.mutable_view<float>()) v = 1.0f;
  w.set_real(0, 0.4961);  // 63.0047 steps
  const WeightCodes made = weight_codes(w, 0);
  for (int64_t i = 1; i < 9; ++i) EXPECT_EQ(made.codes.integer(i), 127);
  const Tensor none(DType::f32, {2, 1, 3, 3});
  EXPECT_EQ(weight_codes(none, 0).dead, 2);
}

/// The largest sum of products of one sign that vpmaddubsw would see, data being 255: of [outputs][taps][inputs].
int64_t largest_pair(const Tensor& codes, size_t axis) {
  const int64_t outputs = codes.dim(static_cast<int>(axis)), inputs = codes.dim(static_cast<int>(1 - axis));
  const int64_t taps = codes.elements() / (outputs * inputs);
  int64_t most = 0;
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t p = 0; p + 1 < inputs * taps; p += inputs % 2 == 0 ? 2 : 1) {
      int64_t pair[2];
      for (int64_t k = 0; k < 2; ++k) {
        const int64_t input = (p + k) % inputs, tap = (p + k) / inputs;
        pair[k] = codes.integer(((axis == 0 ? o * inputs + input : input * outputs + o) * taps) + tap);
      }
      const bool same = (pair[0] > 0) == (pair[1] > 0);
      most =
          std::max(most, 255 * (same ? std::abs(pair[0] + pair[1]) : std::max(std::abs(pair[0]), std::abs(pair[1]))));
    }
  return most;
}

struct PairCase {
  const char* name;
  std::vector<int64_t> sizes;
  size_t axis;
};

class PairsOfWeights : public testing::TestWithParam<PairCase> {};

TEST_P(PairsOfWeights, FitSixteenBits) {
  const Tensor w = drawn(GetParam().sizes, 11);
  const WeightCodes free = weight_codes(w, GetParam().axis);
  const WeightCodes made = weight_codes(w, GetParam().axis, {.int16_pairs = true});
  EXPECT_GT(largest_pair(free.codes, GetParam().axis), INT16_MAX);
  EXPECT_LE(largest_pair(made.codes, GetParam().axis), INT16_MAX);
  EXPECT_LT(made.sqnr, free.sqnr);
  EXPECT_GT(made.sqnr, free.sqnr - 6.1) << "half of all codes would cost 6 dB";
  const WeightCodes one = weight_codes(w, GetParam().axis, {.per_channel = false, .int16_pairs = true});
  EXPECT_LE(largest_pair(one.codes, GetParam().axis), INT16_MAX);
  for (const float scale : one.scales.view<float>()) EXPECT_EQ(scale, one.scales.view<float>()[0]);
}

INSTANTIATE_TEST_SUITE_P(Layouts, PairsOfWeights,
                         testing::Values(PairCase{"pointwise", {16, 32, 1, 1}, 0}, PairCase{"windows", {8, 6, 3, 3}, 0},
                                         PairCase{"image", {8, 3, 3, 3}, 0}, PairCase{"linear", {48, 24}, 1},
                                         PairCase{"odd_linear", {47, 24}, 1}, PairCase{"transposed", {24, 48}, 0}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(WeightCodes, PairsThatFitStayAsTheyAre) {
  Tensor w = drawn({8, 16}, 5);
  for (int64_t i = 0; i < w.elements(); i += 2) w.set_real(i, -std::fabs(w.real(i)));  // the other sign than its pair's
  for (int64_t i = 1; i < w.elements(); i += 2) w.set_real(i, std::fabs(w.real(i)));
  const WeightCodes made = weight_codes(w, 0, {.int16_pairs = true}), free = weight_codes(w, 0);
  EXPECT_TRUE(made.codes.same_bits(free.codes));
  EXPECT_TRUE(made.scales.same_bits(free.scales));
  EXPECT_EQ(made.cut, 0);
}

}  // namespace
}  // namespace opfuse::quantization
