// Where buffers of an arena go: to memory that was touched a short while ago, and never into what is alive.
#include "program/hot_places.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace opfuse {
namespace {

int64_t end_of(const std::vector<ArenaItem>& items) {
  int64_t end = 0;
  for (const ArenaItem& item : items) end = std::max(end, item.offset + item.bytes);
  return end;
}

TEST(HotPlaces, WhatWasTouchedLastIsTakenBeforeWhatNeverWas) {
  std::vector<ArenaItem> items = {{0, 64, {0, 1}, 0}, {1, 64, {1, 2}, 64}, {2, 64, {2, 3}, 128}, {3, 256, {6, 7}, 0}};
  move_to_hot_places(items);
  EXPECT_EQ(items[2].offset, 0) << "where the first was, which ended before it begins";
  EXPECT_EQ(end_of(items), 256);
}

TEST(HotPlaces, NothingAliveIsOverwrittenAndTheArenaDoesNotGrow) {
  std::mt19937 draw(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<ArenaItem> items;
    for (int i = 0; i < 30; ++i) {
      const int first = static_cast<int>(draw() % 40), last = first + static_cast<int>(draw() % 5);
      ArenaItem item{i, static_cast<int64_t>(64 * (1 + draw() % 8)), {first, last}, 0};
      for (bool moved = true; moved;) {  // the first place that is free
        moved = false;
        for (const ArenaItem& other : items)
          if (other.life.first <= last && first <= other.life.last && other.offset < item.offset + item.bytes &&
              item.offset < other.offset + other.bytes)
            item.offset = other.offset + other.bytes, moved = true;
      }
      items.push_back(item);
    }
    const int64_t before = end_of(items);
    move_to_hot_places(items);
    EXPECT_LE(end_of(items), before);
    for (const ArenaItem& a : items)
      for (const ArenaItem& b : items) {
        if (a.buffer >= b.buffer || a.life.first > b.life.last || b.life.first > a.life.last) continue;
        EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset) << a.buffer << " " << b.buffer;
      }
  }
}

}  // namespace
}  // namespace opfuse
