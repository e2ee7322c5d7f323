// How a block copies its rows of one operand, 16 bytes at a time: what depends on the row alone is computed before the
// loop over k, so that a step adds one number to each row's offset, or to one pointer where rows are equally far apart.
#pragma once

#include <array>

#include "cuda/stage.hpp"
#include "cuda/tile_view.hpp"

namespace opfuse::cuda {

/// How the threads of a fill share tiles of rows that have `chunks` times 16 bytes. `columns` of them stand along a row
/// and copy every `columns`-th chunk of it: whole sectors of 32 bytes, of few rows, whose addresses and taps are few.
struct CopyShape {
  int64_t threads = 0, depth = 0;  ///< elements of a step
  int64_t chunks = 0, columns = 0;
  int64_t rows() const { return threads / columns; }     ///< copied at once
  int64_t together() const { return chunks / columns; }  ///< of a row, by one thread
};
/// A step that has whole extents of the last axes of k, within one extent of the axis in front of them: where a chunk
/// lies is then a sum of what the row, the step and its place in the step say.
struct WholeStep {
  std::vector<int> axes;  ///< that one in front, then the whole ones; empty: steps are not whole
  int64_t inside = 1;     ///< elements of the whole ones
  explicit operator bool() const { return !axes.empty(); }
};
/// Of steps of `depth` along the axes `k`, which may be ragged where only one is longer than 1.
WholeStep whole_step(const Stage& stage, const std::vector<int>& k, int64_t depth);

/// `apart`: chunks of a thread so far apart, or multiples, lie at one distance whatever their k; 0: none do. `m`, `n`:
/// rows of the tiles.
CopyShape copy_shape(int64_t threads, int64_t depth, int64_t chunks, int64_t apart, int64_t m, int64_t n);
/// Which bits of a row, among the eight of one period of place, the lowest three bits of the number of a thread's row
/// are: such that eight threads write to all banks.
std::array<int, 3> row_bits(const CopyShape& shape);

class MmaCopies {
 public:
  struct Tile {
    std::string name;              ///< "a", of the operand
    std::string row;               ///< "m", of its rows
    const std::vector<int>& axes;  ///< that its rows stand for
    Dim extent;                    ///< of rows in the problem
    int64_t size = 0;              ///< rows of the tile
    CopyShape shape;
    WholeStep step = {};  ///< where that is one, chunks are in the rows
    int64_t bits = 32;    ///< taps that are a bit each
  };
  MmaCopies(StageText& s, const TileView& view, const Expr& operand, Tile tile);

  /// Whether a guard of the operand asks where `axis`, one of k, stands.
  static bool guards_along(const StageText& s, const Expr& operand, int axis);
  /// Whether the step's number is all that a copy asks about k.
  bool counts_steps() const { return !moves_.empty(); }
  /// Before the loop: offsets of this thread's rows, and which taps of each lie inside. `outside` has the batch.
  void declare(const Env& outside);
  /// Within the fill of a stage: the copies. `along` has the axes of k, where steps do not count; `within`: whether k
  /// is inside, "" always.
  void copy(const Env& along, const std::string& within, const StageText::Point& outside);
  /// Whether elements of rows may be gathered: what a guard asks is a bit.
  bool gathers() const { return guarded_ == masked_; }
  /// Within the fill of a stage: rows whose k does not lie in whole 16 bytes, element by element into registers, 16
  /// bytes at a time to shared memory. `k`: summed axes, `depth`: all of their elements.
  void gather(const std::vector<int>& k, int64_t depth);

 private:
  StageText& s_;
  Tile tile_;
  const Read& read_;
  int index_;
  Operand operand_;
  bool guarded_, ragged_;
  std::vector<int> taps_;         ///< axes of k that a guard asks about
  std::optional<int64_t> apart_;  ///< numbers from row to row, where that is the same for all
  std::string chunk_;             ///< where this thread's first chunk of a whole step lies, from its row's start on
  bool masked_ = false;           ///< one bit for each of their positions says what the guard does
  bool wide_ = false;             ///< of 64
  struct Move {
    int64_t every, by;  ///< steps, elements
  };
  std::vector<Move> moves_;  ///< of a row's start from step to step; empty: it does not only depend on the step
  int64_t steps_of_tap_ = 0;
  Dim tap(const Env& env) const;
  void see_steps(const TileView& view);
  void count_steps();
  void decode_step(const Env& along);
  std::optional<int64_t> rows_apart() const;
  std::string row_offset(const StageText::Point& row) const;
  void declare_chunk(size_t axes);
  std::string between_columns() const;
  void taps_of_row(const StageText::Point& row);
  Dim row_at(const std::string& i);
  std::string bytes(const Env& along, const std::string& within, const StageText::Point& outside);
};

}  // namespace opfuse::cuda
