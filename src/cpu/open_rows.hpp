// How an open number of rows (or pixels) is cut into register tiles. A tile of few rows takes as long as the latency of
// its multiply-adds, so the rows behind the widest tiles go in as few and as wide tiles as there are: 17 rows in tiles
// of 14 are 9 + 8, not 14 + 2 + 1. Which, a table says that is made when the kernel is.
#pragma once

#include <cstdint>
#include <vector>

namespace opfuse {

struct RowCut {
  int64_t width = 1, count = 0;
};

/// Widths that last rows may have: the widest first, 1 last.
std::vector<int64_t> row_widths(int64_t widest);

/// The fastest cut of `rows` rows, a tile count for each of row_widths(widest). `vectors`: of outputs in a tile, which
/// costs as much as `tile` rows besides its own.
std::vector<RowCut> cut_rows(int64_t rows, int64_t widest, int64_t vectors, int64_t in_flight, double tile);

}  // namespace opfuse
