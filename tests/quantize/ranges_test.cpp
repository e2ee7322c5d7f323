// Ranges and codes from statistics whose best range is known.
#include "quantize/ranges.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "base/fail.hpp"

namespace opfuse::quantization {
namespace {

TensorStatistics statistics_of(std::vector<float> numbers) {
  TensorStatistics s{.tensor = "t"};
  const ArrayView array{DType::f32, numbers.data(), {static_cast<int64_t>(numbers.size())}};
  EXPECT_TRUE(take_array(s, array, true));
  return s;
}

std::vector<float> normal(int count, uint32_t seed = 1) {
  std::mt19937 draw(seed);
  std::normal_distribution<float> number;
  std::vector<float> x(static_cast<size_t>(count));
  for (float& v : x) v = number(draw);
  return x;
}

/// What rounding to these codes really loses, dB.
double measured(const std::vector<float>& x, const Codes& codes) {
  double signal = 0, noise = 0;
  const double lowest = codes.dtype == DType::u8 ? 0 : -128;
  for (float v : x) {
    const double code = std::clamp(std::nearbyint(double(v / codes.scale)) + codes.zero, lowest, lowest + 255);
    const double y = (code - codes.zero) * codes.scale;
    signal += double(v) * v, noise += (v - y) * (v - y);
  }
  return 10 * std::log10(signal / noise);
}

TEST(Ranges, WholeRangeHasEveryNumber) {
  const Codes u8 = codes_of(statistics_of({-1, 0, 3}), {Method::minmax}, DType::u8);
  EXPECT_FLOAT_EQ(u8.scale, 4.0f / 255);
  EXPECT_EQ(u8.zero, 64);
  const Codes i8 = codes_of(statistics_of({-1, 0, 3}), {Method::minmax}, DType::i8);
  EXPECT_FLOAT_EQ(i8.scale, 3.0f / 127);
  EXPECT_EQ(i8.zero, 0);
}

/// 0 keeps a code of its own where all numbers have one sign.
TEST(Ranges, OneSidedNumbersBeginAtZero) {
  EXPECT_EQ(codes_of(statistics_of({2, 5}), {Method::minmax}, DType::u8), (Codes{DType::u8, 5.0f / 255, 0}));
  const Codes negative = codes_of(statistics_of({-2, -5}), {Method::minmax}, DType::u8);
  EXPECT_EQ(negative, (Codes{DType::u8, 5.0f / 255, 255}));
  for (const char* method : {"mse", "percentile=99", "entropy"}) {
    const Codes codes = codes_of(statistics_of({-2, -3, -4, -5}), parse_method(method), DType::u8);
    EXPECT_EQ(codes.zero, 255) << method;
    EXPECT_GT(codes.scale, 0) << method;
  }
}

TEST(Ranges, ConstantsAndZerosHaveCodes) {
  for (const char* method : {"minmax", "ema", "mse", "percentile=99", "entropy"}) {
    EXPECT_EQ(codes_of(statistics_of({0, 0, 0}), parse_method(method), DType::u8), (Codes{DType::u8, 1, 0})) << method;
    const Codes constant = codes_of(statistics_of({3, 3}), parse_method(method), DType::i8);
    EXPECT_FLOAT_EQ(constant.scale * 127, 3) << method;
  }
  EXPECT_GT(codes_of(statistics_of({0, 1e-44f}), {Method::minmax}, DType::u8).scale, 0);
}

TEST(Ranges, LeastErrorIsLessThanThatOfTheWholeRangeAndNearTheBest) {
  std::vector<float> x = normal(200000);
  x[7] = 11;  // an outlier
  const TensorStatistics s = statistics_of(x);
  for (DType dtype : {DType::u8, DType::i8}) {
    const double least = measured(x, codes_of(s, {Method::mse}, dtype));
    EXPECT_GT(least, measured(x, codes_of(s, {Method::minmax}, dtype)) + 1);
    double best = 0;
    for (double t = 2; t < 12; t += 0.5) {
      const Codes i8{DType::i8, static_cast<float>(t / 127), 0};
      best = std::max(best, measured(x, i8));
    }
    EXPECT_GT(least, best - 0.5);
  }
}

TEST(Ranges, WhatTheHistogramSaysIsWhatIsLost) {
  const std::vector<float> x = normal(50000);
  const TensorStatistics s = statistics_of(x);
  for (const char* method : {"minmax", "mse", "percentile=99", "entropy"}) {
    const Codes codes = codes_of(s, parse_method(method), DType::u8);
    EXPECT_NEAR(loss_of(s, codes).sqnr, measured(x, codes), 0.7) << method;
  }
}

/// Half of the numbers are 0, which costs nothing: the rest decides.
TEST(Ranges, ZerosBehindAReluDoNotCount) {
  std::vector<float> x = normal(40000);
  for (float& v : x) v = std::max(v, 0.0f);
  const TensorStatistics s = statistics_of(x);
  EXPECT_NEAR(double(s.zeros), 20000, 500);
  const Codes codes = codes_of(s, {Method::mse}, DType::u8);
  EXPECT_EQ(codes.zero, 0);
  EXPECT_NEAR(loss_of(s, codes).sqnr, measured(x, codes), 0.7);
  EXPECT_GE(measured(x, codes), measured(x, codes_of(s, {Method::minmax}, DType::u8)));
}

TEST(Ranges, PercentilesLeaveOutTails) {
  std::vector<float> x(10000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 10000;
  x[0] = -50, x[1] = 90;
  const Codes codes = codes_of(statistics_of(x), parse_method("percentile=99.9"), DType::u8);
  EXPECT_LT(codes.high(), 2);
  EXPECT_GT(codes.high(), 0.9);
  EXPECT_GT(codes.low(), -1);
  EXPECT_GT(loss_of(statistics_of(x), codes).saturated, 0);
}

TEST(Ranges, MovingAveragesFollowSamples) {
  TensorStatistics s;
  for (float high : {1.0f, 1.0f, 11.0f}) {
    std::vector<float> x{0, high};
    take_array(s, {DType::f32, x.data(), {2}}, false);
  }
  EXPECT_NEAR(codes_of(s, {Method::ema}, DType::u8).high(), 2, 1e-6);
  EXPECT_NEAR(codes_of(s, {Method::minmax}, DType::u8).high(), 11, 1e-6);
}

/// Rows of channels, blocks and their ends.
TEST(Ranges, StatisticsAreThoseOfPlainLoops) {
  constexpr int64_t kChannels = 3;
  for (const int64_t inner : {5, 1747, 5003}) {
    std::vector<float> x(static_cast<size_t>(kChannels * inner));
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = i % 5 == 0 ? 0.0f : static_cast<float>(std::sin(0.7 * double(i)) * double(1 + i / inner));
    TensorStatistics s{.tensor = "x", .axis = 1};
    const ArrayView array{DType::f32, x.data(), {1, kChannels, inner}};
    ASSERT_TRUE(take_array(s, array, true));
    EXPECT_EQ(std::accumulate(s.histogram.counts.begin(), s.histogram.counts.end(), int64_t{0}), kChannels * inner);
    EXPECT_EQ(s.low, double(*std::min_element(x.begin(), x.end())));
    EXPECT_EQ(s.high, double(*std::max_element(x.begin(), x.end())));
    EXPECT_EQ(s.zeros, std::count(x.begin(), x.end(), 0.0f));
    for (size_t c = 0; c < kChannels; ++c) {
      const auto* from = x.data() + static_cast<int64_t>(c) * inner;
      EXPECT_EQ(s.channel_high[c], double(*std::max_element(from, from + inner)));
      EXPECT_NEAR(s.channel_sums[c], std::accumulate(from, from + inner, 0.0), 1e-9);
    }
  }
}

TEST(Ranges, NanAndInfinitiesAreFound) {
  for (float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
    std::vector<float> x(9000, 1);
    for (const size_t at : {size_t{0}, size_t{33}, x.size() - 1}) {
      TensorStatistics s;
      std::vector<float> with = x;
      with[at] = bad;
      EXPECT_FALSE(take_array(s, {DType::f32, with.data(), {9000}}, true)) << at;
    }
  }
}

TEST(Ranges, MethodsHaveWords) {
  for (const char* text : {"minmax", "ema", "percentile=99.5", "mse", "entropy"})
    EXPECT_EQ(parse_method(text).text(), text);
  EXPECT_EQ(parse_method("percentile").text(), "percentile=99.99");
  for (const char* bad : {"", "max", "percentile=", "percentile=101", "percentile=nan", "mse=3", "percentile=9x"})
    EXPECT_THROW(parse_method(bad), Error) << bad;
}

/// [2, channels, 5, 7] in blocks, the lanes behind the last channel filled with what must not count.
std::vector<float> in_blocks(const std::vector<float>& dense, int64_t channels, int64_t block) {
  const int64_t inner = 35, count = (channels + block - 1) / block;
  std::vector<float> x(static_cast<size_t>(2 * count * inner * block), 1e30f);
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < inner; ++i)
        x[static_cast<size_t>(((n * count + c / block) * inner + i) * block + c % block)] =
            dense[static_cast<size_t>((n * channels + c) * inner + i)];
  return x;
}

TEST(Statistics, AreThoseOfTheDenseArrayInBlocks) {
  for (const int64_t block : {4, 8, 16, 64})
    for (const int64_t channels : {3, 8, 24, 40, 64})
      for (const int axis : {-1, 1, 3}) {
        SCOPED_TRACE(testing::Message() << channels << " channels by " << block << ", axis " << axis);
        std::vector<float> x = normal(static_cast<int>(2 * channels * 35), 5), lying = in_blocks(x, channels, block);
        TensorStatistics want{.tensor = "t", .axis = axis}, got = want;
        ASSERT_TRUE(take_array(want, {DType::f32, x.data(), {2, channels, 5, 7}}, true));
        const std::vector<int64_t> shape{2, (channels + block - 1) / block, 5, 7, block};
        ASSERT_TRUE(take_array(got, {DType::f32, lying.data(), shape}, true, ChannelBlocks{1, channels}));
        EXPECT_EQ(got.elements, want.elements);
        EXPECT_EQ(got.per_channel, want.per_channel);
        EXPECT_EQ(got.histogram, want.histogram);
        EXPECT_EQ(got.channel_low, want.channel_low);
        EXPECT_EQ(got.channel_high, want.channel_high);
        EXPECT_THAT(got.channel_sums, testing::Pointwise(testing::DoubleNear(1e-9), want.channel_sums));
        EXPECT_THAT(got.channel_squares, testing::Pointwise(testing::DoubleNear(1e-9), want.channel_squares));
        EXPECT_EQ(got.low, want.low);
        EXPECT_EQ(got.high, want.high);
        lying[static_cast<size_t>(block - 1)] = NAN;  // a channel's only where there are as many
        EXPECT_EQ(take_array(got, {DType::f32, lying.data(), shape}, true, ChannelBlocks{1, channels}),
                  channels < block);
      }
}

}  // namespace
}  // namespace opfuse::quantization
