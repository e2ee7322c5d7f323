// Matrix registers load pixels that lie at equal distances. Where windows leave the data, or rows of a tile lie apart,
// a part copies the rows that it reads into scratch, with their borders:
//
//   copies   [C/step][row phases][rows of a phase][columns, borders included][step]
//
// Rows of a stride s have s phases, so those of neighbouring results are neighbours. Where a register holds several
// rows, the borders between them are computed too and thrown away. In images of few channels (the first layer) taps of
// a row are neighbours: planes become words of a pixel, and a product takes all column taps at once ("joined").
#pragma once

#include <optional>

#include "cpu/contraction/contraction_schedule.hpp"
#include "kernel/spec.hpp"
#include "kernel/views.hpp"

namespace opfuse {

constexpr int64_t kJoinedChannels = 4;  ///< of a pixel, in memory: three colours and a zero

struct DataCopies {
  SlidingDim row, column;
  bool joined = false;
  int64_t row_taps = 1, column_taps = 1;
  int64_t blocks = 1;  ///< of `step` channels
  int64_t step = 1;
  int64_t width = 1;   ///< pixels of a copied row
  int64_t pitch = 1;   ///< from one row to the next: a multiple of `pixel`
  int64_t pixel = 1;   ///< copied pixels from one pixel of a tile to the next
  int64_t phases = 1;  ///< of rows
  int64_t rows = 1;    ///< of a phase, for the results of a chunk

  int64_t row_elements() const { return pitch * step; }
  int64_t block_elements() const { return phases * rows * row_elements(); }
  int64_t bytes(const ElementTypes& types) const { return blocks * block_elements() * types.data_bytes(); }
  /// Input rows of so many result rows, and from one of them to the next.
  int64_t input_rows(int64_t results) const {
    return row.tap < 0 ? results : (results - 1) * row.stride + (row_taps - 1) * row.dilation + 1;
  }
  int64_t row_step() const { return row.tap < 0 ? row.stride : 1; }
  int64_t column_step() const { return column.tap < 0 ? column.stride : 1; }
};

/// One product takes all taps of a filter's row: few channels, planes apart.
bool joins_taps(const Region& region, const ContractionView& view, const TargetInfo& target);

/// The copies of a kernel with such a tile; none: its tiles read the data where they lie, or the extents are open.
/// Chunks become shorter until the copies fit.
std::optional<DataCopies> data_copies(const Stage& stage, const ContractionView& view, const ContractionSchedule& s);
/// Pixels from one row of a tile to the next in a register.
int64_t row_distance(const std::optional<DataCopies>& copies, const ContractionSchedule& s);
/// Rows of a tile whose width is all of a row: as many as two registers hold.
int64_t matrix_height(const Stage& stage, const ContractionView& view, ContractionSchedule s, int64_t rows);
void copy_where_needed(ContractionSchedule& s, const Region& region, const ContractionView& view,
                       const TargetInfo& target);

}  // namespace opfuse
