// One register tile: which pixels, which vectors of output channels, where it lies among the others. A value that loops
// hand on; nothing of it changes while its code is emitted.
#pragma once

#include "cpu/emit/contraction/plan.hpp"

namespace opfuse::cpu {

/// Which outputs of their block the vectors hold.
enum class Outputs {
  whole,    ///< all of them
  last,     ///< those of the last, narrower block
  decided,  ///< when the kernel runs
};

/// What blocks of output channels that share code have in common.
struct BlockForm {
  int64_t sums = 1;
  int64_t vectors = 1;  ///< per sum; the last block has code of its own where it needs fewer
  Outputs outputs = Outputs::whole;
  bool half = false;  ///< two pixels share an accumulator of the last vector (half.cpp)

  int64_t factors() const { return sums * vectors; }  ///< vectors of weights in a step
  /// In ContractionPlan::places; `vector` counts through all sums. A pair of pixels has the first one's.
  size_t place_of(int64_t pixel, int64_t vector) const {
    const bool paired = half && vector + 1 == vectors;
    return static_cast<size_t>((paired ? pixel / 2 * 2 : pixel) * factors() + vector);
  }
  bool unused(int64_t place) const { return half && place % vectors + 1 == vectors && place / vectors % 2; }
};

/// The groups of channels that a vector of outputs touches (grouped.cpp).
struct Groups {
  std::vector<Value*> starts;  ///< their first output channels
  std::vector<Value*> masks;   ///< lanes of the second, third .. of them
};

struct Tile {
  BlockForm form;
  Value* block = nullptr;        ///< of output channels
  Value* first_block = nullptr;  ///< of the part
  Value* last_block = nullptr;
  Value* pass = nullptr;  ///< over the channels; null: all in one
  Groups groups;
  Value* item = nullptr;             ///< number of its row or tile within the pass over its block
  const TileRun* row_run = nullptr;  ///< its rows, null when rows go one by one
  const TileRun* run = nullptr;      ///< its pixels of a row

  int64_t rows() const { return row_run ? row_run->width : 1; }
  int64_t pixels() const { return run->width * rows(); }
  int64_t accumulators() const { return pixels() * form.factors(); }
  // bit p: pixel p % width of row p / width
  uint64_t columns(uint64_t bits) const;     ///< in every row
  uint64_t whole_rows(uint64_t bits) const;  ///< these rows
  uint64_t all() const { return whole_rows(~uint64_t{0}); }
};

/// Moves `env` from the tile's first pixel to pixel `p`.
void move_to_pixel(const ContractionPlan& plan, const Tile& tile, int64_t p, Env& env);

/// Elements of the data from one pixel to the next, and from one of the tile's rows to the next.
struct PixelSteps {
  Value* pixel;
  Value* row;

  PixelSteps(const ContractionPlan& plan, const Tile& tile);
  /// From the first pixel to pixel `p`, and `more`.
  Value* offset(Kernel& k, const Tile& tile, int64_t p, Value* more) const;
};

}  // namespace opfuse::cpu
