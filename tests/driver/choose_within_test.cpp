// The fastest options of all layers within one bound on their sizes.
#include "tune/choose_within.hpp"

#include <gtest/gtest.h>

namespace opfuse {
namespace {

TEST(ChooseWithin, TakesTheFastestWhereThereIsRoom) {
  EXPECT_EQ(choose_within({{{0, 10, 0}, {1, 5, 40}}, {{0, 7, 0}, {2, 3, 60}}}, 100), (std::vector<size_t>{1, 2}));
}

TEST(ChooseWithin, ASmallStepForManyBeatsALargeOneForOne) {
  // by time saved per byte the first layer would take all the room
  const std::vector<SizedOption> greedy = {{0, 10, 0}, {1, 4, 60}}, half = {{0, 10, 0}, {1, 6, 50}};
  EXPECT_EQ(choose_within({greedy, half, half}, 100), (std::vector<size_t>{0, 1, 1}));
}

TEST(ChooseWithin, NeverPassesTheBound) {
  std::vector<std::vector<SizedOption>> layers;
  for (size_t l = 0; l < 20; ++l)
    layers.push_back({{0, 10, 0}, {1, 8, static_cast<int64_t>(1000 + 37 * l)}, {2, 5, static_cast<int64_t>(2999 + l)}});
  for (const int64_t room : {0, 999, 1000, 10'000, 40'001}) {
    int64_t bytes = 0;
    const std::vector<size_t> chosen = choose_within(layers, room);
    for (size_t l = 0; l < layers.size(); ++l) bytes += layers[l][chosen[l]].bytes;
    EXPECT_LE(bytes, room);
    EXPECT_EQ(bytes == 0, room < 1000);
  }
}

TEST(ChooseWithin, WhatNothingFitsStaysTheFirst) {
  EXPECT_EQ(choose_within({{{3, 1e15, 0}, {1, 5, 40}}}, 39), (std::vector<size_t>{3}));
}

}  // namespace
}  // namespace opfuse
