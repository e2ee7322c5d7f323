// What stays the same while a contraction is emitted: its form, the schedule's numbers, how pixels and rows are cut,
// the registers' places. Tiles (tile.hpp) are what changes; policies (pack, passes, half, overlap) are functions of
// both.
#pragma once

#include "cpu/contraction/contraction_schedule.hpp"
#include "cpu/contraction/data_copies.hpp"
#include "cpu/emit/contraction/product.hpp"
#include "cpu/emit/stage.hpp"
#include "cpu/emit/tiles.hpp"

namespace opfuse::cpu {

/// Memory of a tile in matrix registers (matrix.cpp): what the registers leave, and rows of data put together.
struct MatrixMemory {
  Value* sums = nullptr;
  std::vector<Value*> data;    ///< by register's worth of pixels
  Value* shapes = nullptr;     ///< of the registers
  Value* first_row = nullptr;  ///< variable: the first result row of the chunk that was copied
};

struct ContractionPlan;
MatrixMemory matrix_memory(const ContractionPlan& plan);
std::vector<Value*> matrix_places(const ContractionPlan& plan);
Value* widened_data(const ContractionPlan& plan);  // widen_data.cpp

/// Pixels [begin, begin + count) alone, in the coordinates of all.
struct PixelBand {
  Value* begin = nullptr;
  Value* count = nullptr;
};

struct ContractionPlan {
  ContractionPlan(Kernel& k, StageEmitter& stage, const ContractionView& view, const ContractionSchedule& schedule,
                  std::optional<PixelBand> band = {}, int bias = -1);

  Kernel& k;
  StageEmitter& s;
  const ContractionView& view;
  const ContractionSchedule schedule;
  const std::optional<PixelBand> band;  ///< nothing: all pixels
  const int bias;                       ///< number of the read that sums begin with (sum_start.hpp); -1: zeros
  const Product product;
  const int64_t lanes;    ///< sums in a vector
  const int64_t vectors;  ///< of a block of weights, per sum
  const int64_t block;    ///< output channels of such a block
  const int64_t sums;     ///< of the same data
  const int row_axis;     ///< the outer axis that parts and bands cut (an image row), -1 when tiles themselves are cut
  const std::vector<int> batch_axes;
  const std::optional<DataCopies> copies;
  const SlidingDim* const pixel_dim;  ///< when its windows may leave the data
  const SlidingDim* const row_dim;    ///< of the row axis
  const bool scaled;                  ///< packed weights have the data's gate (ContractionView::factor) as a factor
  const Operand weights;              ///< of the first sum: constants, or the packed block
  const std::vector<TileRun> runs;
  Value* const open_items;  ///< rows or tiles of a pass over a block, where their number is open
  const std::vector<TileRun> row_runs;
  const MatrixMemory matrix;         ///< where sums are, where the schedule says so
  const std::vector<Value*> places;  ///< of sums in memory (BlockForm::place_of)
  Value* const widened;              ///< a step's data of a tile in f32; null: data are multiplied as they lie

  const ElementTypes& types() const { return view.types; }
  llvm::Align data_align() const { return llvm::Align(static_cast<uint64_t>(types().data_bytes())); }
  llvm::Align weight_align() const { return llvm::Align(static_cast<uint64_t>(types().weight_bytes())); }
  llvm::Align sum_align() const { return llvm::Align(static_cast<uint64_t>(types().sum_bytes())); }

  const Operand& data() const { return s.reads[static_cast<size_t>(view.data)]; }
  /// Of weights that lie as codes: of the numbers they stand for.
  const IndexMap& map_of(int read) const {
    return view.coded && read == view.weights ? view.coded->map : s.stage.reads[static_cast<size_t>(read)].map;
  }
  const Operand& weights_of(int64_t sum) const;
  /// Elements between neighbours along an axis of the data; no axis: 0.
  Value* data_step(int axis) const { return axis < 0 ? k.i64(0) : axis_step(k, data(), map_of(view.data), axis); }

  /// Elements of the weights from one channel to the next, or from one unit of them to the next, by its channels.
  Value* weights_step() const;

  int64_t depth() const { return channel_depth(s.stage, view); }
  int64_t channels() const { return axis_extent(s.stage, view.vec).value(); }  ///< of the output
  int64_t blocks() const;
  Dim items() const;  ///< rows, or tiles
  int64_t blocks_per_part() const;
  int64_t items_per_part() const;
  int64_t passes() const;  ///< over the channels (schedule.k_block)

  int64_t tap_count(int tap) const { return axis_extent(s.stage, tap).value(); }
  const SlidingDim* sliding_of_tap(int tap) const;
  bool may_leave(const SlidingDim& d) const { return view.guarded && !copies && cpu::may_leave(s.stage, d); }
  /// Taps outside the data have products too: padding has a code other than 0.
  bool fills() const { return product.outside != nullptr && !copies; }
  /// One product takes all taps along the axis.
  bool joins(int tap) const { return copies && copies->joined && tap == copies->column.tap; }
  bool prefetches() const { return schedule.prefetch > 0; }
};

}  // namespace opfuse::cpu
