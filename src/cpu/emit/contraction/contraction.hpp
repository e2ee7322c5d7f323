// The register-tiled contraction, as an object so that a fused kernel can emit it into a row band.
#pragma once

#include "cpu/emit/stage.hpp"
#include "cpu/emit/tiles.hpp"

namespace opfuse::cpu {

class ContractionEmitter {
 public:
  ContractionEmitter(Kernel& k, StageEmitter& stage, const ContractionView& view);

  /// The outer axis that parts and bands cut (an image row), -1 when tiles themselves are cut.
  int row_axis() const { return row_axis_; }
  int64_t blocks() const;  ///< of output channels
  Dim items() const;       ///< rows, or tiles
  const std::vector<int>& batch_axes() const { return batch_axes_; }
  /// All of blocks [ob0, ob1) of items [i0, i1) at the batch coordinates in `env`.
  void emit(const Env& env, Value* ob0, Value* ob1, Value* i0, Value* i1);
  /// The same for weights that each block packs into scratch (schedule knob "pack").
  void emit_packed(const Env& env, Value* ob0, Value* ob1, Value* i0, Value* i1);

 private:
  static constexpr int64_t kUnrolledLanes = 4;
  Kernel& k_;
  StageEmitter& s_;
  const ContractionView& view_;
  int64_t lanes_, vectors_, block_, width_, height_, step_, chunk_;
  int64_t sums_ = 1;
  int row_axis_ = -1;
  std::vector<int> batch_axes_;
  const SlidingDim* pixel_dim_ = nullptr;  ///< when its windows may leave the data
  const SlidingDim* row_dim_ = nullptr;    ///< of the row axis
  std::vector<TileRun> runs_, row_runs_;
  int64_t tile_rows_ = 1;             ///< of the tile being emitted
  const TileRun* row_run_ = nullptr;  ///< its rows, null when rows go one by one
  int64_t grouped_ = 0;               ///< how lanes of several groups get their channels
  std::vector<Value*> group_masks_;   ///< grouped 2: lanes of the vector's second, third .. group
  std::vector<Value*> group_starts_;  ///< first output channel of those groups, from the first
  Value* item_ = nullptr;             ///< number of the row or tile within its pass over a block
  int64_t prefetched_ = 0;            ///< cache lines of the next weights fetched per tap and item
  Value* open_items_ = nullptr;       ///< that share them, where their number is open
  bool overlapped_ = false;           ///< knob "overlap"
  bool fetch_data_ = false;           ///< the next channel block's lines
  bool fetch_outputs_ = false;        ///< lines of results and of the epilogue's operands
  int64_t depth_block_ = 0;           ///< channels per pass over a part's blocks, 0: all in one pass
  Value* first_block_ = nullptr;      ///< of the part
  Value* last_block_ = nullptr;
  Value* block_at_ = nullptr;            ///< the one being emitted
  Value* pass_ = nullptr;                ///< number of that pass
  bool scaled_ = false;                  ///< packed weights have the data's gate (ContractionView::factor) as a factor
  std::vector<llvm::AllocaInst*> rest_;  ///< sums of the tile before, whose epilogue the next tile computes
  llvm::AllocaInst *rest_block_ = nullptr, *rest_row_ = nullptr, *rest_pixel_ = nullptr;  ///< where that tile lies
  bool tail_apart_ = false;             ///< the last, narrower block of outputs has code of its own
  bool in_tail_ = false;                ///< which is being emitted
  bool half_ = false;                   ///< there two pixels share an accumulator of the last vector (knob "half")
  std::vector<llvm::AllocaInst*> acc_;  ///< by (pixel * sums + sum) * vectors + vector

  const ElementTypes& types() const { return view_.types; }
  llvm::Align sum_align() const { return llvm::Align(static_cast<uint64_t>(types().sum_bytes())); }
  llvm::Align data_align() const { return llvm::Align(static_cast<uint64_t>(types().data_bytes())); }
  llvm::Align weight_align() const { return llvm::Align(static_cast<uint64_t>(types().weight_bytes())); }
  Operand& data() { return s_.reads[static_cast<size_t>(view_.data)]; }
  Operand& weights() { return s_.reads[static_cast<size_t>(view_.weights)]; }
  int64_t vectors_of_weights() const { return sums_ * vectors_; }  ///< of one step
  int read_of_weights(int64_t sum) const { return sum ? view_.gates[static_cast<size_t>(sum - 1)] : view_.weights; }
  const SlidingDim* sliding_of_tap(int tap) const;
  int64_t tap_count(int tap) const { return axis_extent(s_.stage, tap).value(); }
  bool may_leave(const SlidingDim& s) const;
  void emit_passes(const Env& env, Value* ob0, Value* ob1, Value* i0, Value* i1);
  void emit_blocks(const Env& env, Value* ob0, Value* ob1, Value* i0, Value* i1);
  void emit_block(Env env, Value* ob, Value* i0, Value* i1);
  void emit_items(Env env, Value* ob, Value* i0, Value* i1);
  void emit_row_tiles(Env env, Value* ob, Value* i0, Value* i1);
  void emit_runs(const Env& env, Value* ob, Value* t0, Value* t1);
  void emit_tile(Env env, Value* ob, const TileRun& run);
  void emit_chunks(const Env& env, Value* ob0, Value* ob1, Value* i0, Value* i1);
  void emit_overlapped_tile(const Env& env, Value* ob, const TileRun& run);
  void start_rest(Value* ob, Value* item);
  void finish_rest(const Env& env);
  std::vector<StageEmitter::Point> points_of_rest(const Env& env, const TileRun& run);
  void when_inside(const Env& env, const std::function<void()>& body);
  void emit_channels(const Env& env, const TileRun& run, int64_t first_step = 0);
  void emit_taps(size_t index, const Env& env, const TileRun& run, uint64_t pixels, int64_t lanes);
  void emit_masked_taps(size_t index, const Env& env, const TileRun& run, const std::vector<uint64_t>& valid,
                        uint64_t pixels, int64_t lanes);
  Value* missing_taps(int tap, const Env& env) const;
  uint64_t all_pixels(const TileRun& run) const;
  uint64_t columns(const TileRun& run, uint64_t bits) const;  ///< in every row of the tile
  uint64_t rows(const TileRun& run, uint64_t bits) const;     ///< whole rows of the tile
  /// `unrolled`: lanes without a loop.
  void emit_steps(const Env& env, uint64_t pixels, const TileRun& run, int64_t lanes,
                  int64_t unrolled = kUnrolledLanes);
  void move_to(Env& env, int64_t p, const TileRun& run) const;
  void emit_step(const Env& env, const Address& d, const std::vector<Address>& w, Value* lane, int64_t unrolled,
                 uint64_t pixels, const TileRun& run);
  std::vector<Address> weights_at(const Env& env);  ///< of every sum
  void emit_codes(const Env& env, uint64_t pixels, const TileRun& run, int64_t channels);
  void start_groups(Value* first);
  void emit_grouped(const Env& env, const Address& w, uint64_t pixels, const TileRun& run, int64_t lanes);
  Value* permuted(const Env& env, Value* at, int64_t channel);
  void multiply(std::vector<Value*>& acc, Value* x, const std::vector<Value*>& w, int64_t pixel);
  size_t place_of(int64_t pixel, int64_t vector) const;  ///< in acc_
  bool unused(int64_t place) const;
  Value* half_weights(Value* at);
  void multiply_half(std::vector<Value*>& acc, Value* x, Value*& first, Value* w, int64_t pixel, uint64_t pixels);
  void split_pairs(const TileRun& run);
  void end_step(std::vector<Value*>& acc, uint64_t pixels);
  std::vector<Value*> load_accumulators(int64_t count);
  void store_accumulators(const std::vector<Value*>& acc, int64_t count);
  std::vector<Value*> load_weights(const std::vector<Value*>& at, Value* lane_step, int64_t lane);
  int64_t passes() const;
  Value* resting(Value* ob, Value* q);
  Dim rows_of_part() const;
  int64_t blocks_per_part() const;
  Value* lanes_below(Value* first, int64_t end);
  void pack_block(const Env& env, const Operand& from, Value* ob);
  Value* packed_value(const Env& at, const Operand& from);
  void pack_taps(size_t index, const Env& env, const Operand& from, Value* to, Value* first);
  void pack_straight(const Env& env, const Operand& from, Value* to, Value* first);
  void pack_transposed(const Env& env, const Operand& from, Value* to, Value* first);
  int64_t items_per_part() const;
  void start_accumulators(const TileRun& run, Value* rest);
  void rest_accumulators(const TileRun& run, Value* rest);
  Value* next_weights(const Address& w, Value* ob);
  /// Taps outside the data have products too: padding has a code other than 0. Pixels that are not named are outside.
  bool fills() const { return view_.guarded && view_.padding != 0; }
  bool prefetches() const { return prefetched_ > 0 && item_; }
  void emit_prefetch_of_taps(size_t index, const Env& env, int64_t lanes);
  void prefetch_data(const Env& env, const Address& d, const TileRun& run);
  void prefetch_epilogue(const Env& env, Value* ob, const TileRun& run);
  void emit_prefetch(const std::vector<Address>& w, int64_t lanes);
  void emit_open_prefetch(Value* weights, Value* next, int64_t least, int64_t all);
  void emit_epilogue(const Env& env, Value* ob, const TileRun& run);
  std::vector<StageEmitter::Point> points_of(const Env& env, Value* ob, const TileRun& run, bool tail);
};

}  // namespace opfuse::cpu
