// An open number of rows in register tiles: all of them, in few tiles, none narrow.
#include "cpu/open_rows.hpp"

#include <gtest/gtest.h>

namespace opfuse {
namespace {

TEST(OpenRows, EveryCutHasAllRowsInFewTiles) {
  for (int64_t widest = 1; widest <= 30; ++widest)
    for (int64_t vectors : {1, 2, 3, 4})
      for (int64_t drawn = 0; drawn < 6 * widest; ++drawn) {
        const int64_t rows = drawn / 3, in_flight = int64_t{4} << drawn % 3;
        const std::vector<RowCut> cuts = cut_rows(rows, widest, vectors, in_flight, 1);
        ASSERT_EQ(cuts.size(), row_widths(widest).size());
        int64_t sum = 0;
        for (const RowCut& cut : cuts) {
          sum += cut.width * cut.count;
          EXPECT_LE(cut.count, 3) << rows << " rows in tiles of " << widest << ": two bits hold a count";
        }
        EXPECT_EQ(sum, rows);
      }
}

int64_t tiles(const std::vector<RowCut>& cuts, int64_t width) {
  for (const RowCut& cut : cuts)
    if (cut.width == width) return cut.count;
  return 0;
}

/// Tiles of one, two or three rows wait for the latency of their multiply-adds.
TEST(OpenRows, NarrowTilesAreAvoided) {
  for (int64_t rows = 14; rows < 28; ++rows) {
    const std::vector<RowCut> cuts = cut_rows(rows, 14, 2, 8, 1);
    EXPECT_EQ(tiles(cuts, 1) + tiles(cuts, 2) + tiles(cuts, 3), 0) << rows << " rows";
  }
  EXPECT_EQ(tiles(cut_rows(17, 14, 2, 8, 1), 9), 1);
  EXPECT_EQ(tiles(cut_rows(17, 14, 2, 8, 1), 8), 1);
  EXPECT_EQ(tiles(cut_rows(28, 14, 2, 8, 1), 14), 2);
  EXPECT_EQ(tiles(cut_rows(1, 14, 2, 8, 1), 1), 1);
}

}  // namespace
}  // namespace opfuse
