#include "cpu/open_rows.hpp"

#include <algorithm>

namespace opfuse {
namespace {

constexpr int64_t kLastWidths[] = {20, 16, 10, 9, 8, 5, 4, 3, 2, 1};

}  // namespace

std::vector<int64_t> row_widths(int64_t widest) {
  std::vector<int64_t> widths = {widest};
  for (int64_t width : kLastWidths)
    if (width < widest) widths.push_back(width);
  return widths;
}

std::vector<RowCut> cut_rows(int64_t rows, int64_t widest, int64_t vectors, int64_t in_flight, double tile) {
  const std::vector<int64_t> widths = row_widths(widest);
  const auto cost = [&](int64_t width) { return static_cast<double>(std::max(width, in_flight / vectors)) + tile; };
  std::vector<double> least(static_cast<size_t>(rows) + 1, 0);
  std::vector<size_t> first(least.size(), 0);  // width of a tile in the fastest cut of so many rows
  for (int64_t n = 1; n <= rows; ++n) {
    auto& best = least[static_cast<size_t>(n)];
    best = 1e9;
    for (size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] > n) continue;
      const double c = cost(widths[i]) + least[static_cast<size_t>(n - widths[i])];
      if (c < best) best = c, first[static_cast<size_t>(n)] = i;
    }
  }
  std::vector<RowCut> cuts;
  for (int64_t width : widths) cuts.push_back({width, 0});
  for (int64_t n = rows; n > 0; n -= widths[first[static_cast<size_t>(n)]]) ++cuts[first[static_cast<size_t>(n)]].count;
  return cuts;
}

}  // namespace opfuse
