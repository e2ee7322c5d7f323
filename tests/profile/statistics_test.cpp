// Percentiles, spread and the bootstrap interval, on samples whose answers are known.
#include "profile/statistics.hpp"

#include <gtest/gtest.h>

#include <ctime>
#include <random>

#include "profile/ratio_of_pairs.hpp"

namespace opfuse {
namespace {

TEST(Statistics, PercentilesInterpolateBetweenOrderStatistics) {
  EXPECT_DOUBLE_EQ(percentile({4, 1, 3, 2}, 50), 2.5);
  EXPECT_DOUBLE_EQ(percentile({4, 1, 3, 2}, 0), 1);
  EXPECT_DOUBLE_EQ(percentile({4, 1, 3, 2}, 100), 4);
  EXPECT_DOUBLE_EQ(percentile({7}, 99), 7);
  EXPECT_DOUBLE_EQ(percentile({}, 50), 0);
}

TEST(Statistics, ASummaryHasTheUsualRows) {
  const Summary s = summarize({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(s.count, 8u);
  EXPECT_DOUBLE_EQ(s.min, 2);
  EXPECT_DOUBLE_EQ(s.max, 9);
  EXPECT_DOUBLE_EQ(s.mean, 5);
  EXPECT_DOUBLE_EQ(s.cv, 0.4);
  EXPECT_DOUBLE_EQ(s.median, 4.5);
  EXPECT_LE(s.p90, s.p95);
  EXPECT_LE(s.p95, s.p99);
}

TEST(Statistics, AnEmptySampleSummarizesToZeros) { EXPECT_EQ(summarize({}).count, 0u); }

std::vector<double> around(double center, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(center, 0.05 * center);
  std::vector<double> sample(200);
  for (double& value : sample) value = normal(random);
  return sample;
}

TEST(Statistics, ARealDifferenceIsOutsideTheInterval) {
  const Interval ratio = ratio_of_medians(around(9, 1), around(10, 2), 0);
  EXPECT_LT(ratio.high, 1);
  EXPECT_NEAR(ratio.estimate, 0.9, 0.02);
  EXPECT_LE(ratio.low, ratio.estimate);
}

TEST(Statistics, NoDifferenceKeepsOneInsideTheInterval) {
  const Interval ratio = ratio_of_medians(around(10, 3), around(10, 4), 0);
  EXPECT_LE(ratio.low, 1);
  EXPECT_GE(ratio.high, 1);
}

TEST(Statistics, AMillionRunsCostNoMoreThanThousands) {
  std::vector<double> a, b;
  for (size_t i = 0; i < 1'000'000; ++i) {  // runs of 100 ns, for as long as a measurement takes
    a.push_back(100 + static_cast<double>(i * 7919 % 1000) / 100);
    b.push_back(110 + static_cast<double>(i * 104729 % 1000) / 100);
  }
  const std::clock_t begin = std::clock();
  const Interval ratio = ratio_of_medians(a, b, 0, 300);
  EXPECT_LT(std::clock() - begin, 2 * CLOCKS_PER_SEC);  // of the processor; several times that if all are resampled
  EXPECT_NEAR(ratio.estimate, 105.0 / 115, 1e-3);
  EXPECT_LT(ratio.high, 0.93);
  EXPECT_GT(ratio.low, 0.90);
}

TEST(Statistics, TheSameSeedGivesTheSameInterval) {
  const Interval a = ratio_of_medians(around(9, 1), around(10, 2), 5);
  const Interval b = ratio_of_medians(around(9, 1), around(10, 2), 5);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
}

/// Runs in turns of 10, each as fast as the machine was then: in two states, the same for both contestants. Of 20 such
/// measurements the interval of one in twenty may leave out the truth; runs drawn one by one left it out in most.
TEST(Statistics, RunsOfOneTurnAreNoIndependentRuns) {
  int wrong = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<double> samples[2];
    for (int turn = 0; turn < 50; ++turn) {
      const double state = random() % 2 ? 1.0 : 1.3;
      for (int i = 0; i < 10; ++i) samples[turn % 2].push_back(state * (1 + 1e-3 * static_cast<double>(random() % 10)));
    }
    const Interval ratio = ratio_of_medians(samples[0], samples[1], seed, 100);
    wrong += ratio.low > 1 || ratio.high < 1;
  }
  EXPECT_LE(wrong, 3);
}

/// A clock that falls to a third while both take turns.
TEST(Statistics, PairsDoNotSeeWhatBothShare) {
  std::vector<double> a, b;
  for (int i = 0; i < 40; ++i) {
    const double slow = 1 + 0.05 * i;
    a.push_back(0.9 * slow * (i % 2 ? 1.001 : 0.999));
    b.push_back(slow);
  }
  EXPECT_GT(ratio_of_medians(a, b, 0).high, 1);
  const Interval pairs = ratio_of_pairs(a, b, 0);
  EXPECT_NEAR(pairs.estimate, 0.9, 0.002);
  EXPECT_LT(pairs.high, 0.91);
  EXPECT_GT(pairs.low, 0.89);
  EXPECT_EQ(ratio_of_pairs({}, b, 0).estimate, 0);
}

}  // namespace
}  // namespace opfuse
