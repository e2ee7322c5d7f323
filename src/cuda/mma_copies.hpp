// How a block copies its rows of one operand, 16 bytes at a time: what depends on the row alone is computed before the
// loop over k, so that a step adds one number to each row's offset, or to one pointer where rows are equally far apart.
#pragma once

#include "cuda/stage.hpp"
#include "cuda/tile_view.hpp"

namespace opfuse::cuda {

class MmaCopies {
 public:
  struct Tile {
    std::string name;               ///< "a", of the operand
    std::string row;                ///< "m", of its rows
    const std::vector<int>& axes;   ///< that its rows stand for
    Dim extent;                     ///< of rows in the problem
    int64_t size = 0, threads = 0;  ///< rows of the tile, threads that copy one row after the other
    bool whole_steps = false;       ///< a step stays within one extent of the last summed axis: chunks are in the rows
  };
  MmaCopies(StageText& s, const TileView& view, const Expr& operand, Tile tile);

  /// Whether a guard of the operand asks where `axis`, one of k, stands.
  static bool guards_along(const StageText& s, const Expr& operand, int axis);
  /// Before the loop: offsets of this thread's rows, and which taps of each lie inside. `outside` has the batch.
  void declare(const Env& outside);
  /// Within the fill of a stage: the copies. `along` has the axes of k; `within`: whether k is inside, "" always.
  void copy(const Env& along, const std::string& within, const StageText::Point& outside);

 private:
  StageText& s_;
  Tile tile_;
  const Read& read_;
  int index_;
  Operand operand_;
  bool guarded_, ragged_;
  std::vector<int> taps_;         ///< axes of k that a guard asks about
  std::optional<int64_t> apart_;  ///< numbers from row to row, where that is the same for all
  bool masked_ = false;           ///< one bit for each of their positions says what the guard does
  Dim tap(const Env& env) const;
  std::optional<int64_t> rows_apart() const;
  std::string row_offset(const StageText::Point& row) const;
  void taps_of_row(const StageText::Point& row);
  Dim row_at(const std::string& i);
  std::string bytes(const Env& along, const std::string& within, const StageText::Point& outside);
};

}  // namespace opfuse::cuda
