// The register-tiled window, as an object so that a fused kernel can emit it over a row band.
#pragma once

#include "cpu/emit/stage.hpp"
#include "cpu/emit/tiles.hpp"

namespace opfuse::cpu {

class WindowEmitter {
 public:
  /// `width`: pixels per register tile.
  WindowEmitter(Kernel& k, StageEmitter& stage, const WindowView& view, int64_t width);

  int64_t blocks() const;  ///< vectors of channels, those of padding blocks included
  Dim rows() const { return row_axis_ < 0 ? Dim(1) : axis_extent(s_.stage, row_axis_); }
  const std::vector<int>& batch_axes() const { return batch_axes_; }
  /// All of channel vectors [b0, b1) of rows [r0, r1) at the batch coordinates in `env`.
  void emit(const Env& env, Value* b0, Value* b1, Value* r0, Value* r1);
  /// Calls `body` with `env` at each of channel vectors [b0, b1), lanes behind the last channel masked.
  void each_vector(const Env& env, Value* b0, Value* b1,
                   const std::function<void(const Env&, Value* block)>& body) const;
  /// What emit() stores as `output` is added to one vector per channel vector, from `first` on at `sums`.
  void sum_into(Value* sums, Value* first, int output) { sums_ = sums, first_sum_ = first, summed_ = output; }

 private:
  Kernel& k_;
  StageEmitter& s_;
  const WindowView& view_;
  int64_t lanes_, block_ = 1;
  int row_axis_ = -1;
  std::vector<int> batch_axes_;
  const SlidingDim* pixel_dim_ = nullptr;
  bool pixel_leaves_ = false;
  std::vector<TileRun> runs_;
  std::vector<llvm::AllocaInst*> acc_;  ///< by set and pixel
  int64_t sets_ = 1;                    ///< of accumulators in the tile being emitted: taps of a row take turns
  int64_t set_ = 0;
  Value *sums_ = nullptr, *first_sum_ = nullptr;
  int summed_ = -1;        ///< output whose values are summed
  Value* rest_ = nullptr;  ///< sums of rows that wait for their epilogue, null: every tile ends with its own
  int64_t rest_rows_ = 0, rest_group_ = 0;  ///< rows that rest at a time; pixels whose epilogues take turns
  bool fetch_rows_ = false;                 ///< epilogues ask for data of rows to come

  const Reduction& reduction() const { return s_.stage.reductions[0]; }
  int64_t tap_count(int tap) const { return axis_extent(s_.stage, tap).value(); }
  void emit_rows(const Env& env, Value* r0, Value* r1);
  void emit_row(const Env& env, Value* rest);
  void add_stored(const std::vector<StageEmitter::Point>& points);
  void emit_tile(const Env& env, const TileRun& run);
  void finish_tile(const Env& env, int64_t width);
  Env pixel_at(Env env, int64_t plus) const;
  void emit_taps(size_t index, const Env& env, const TileRun& run, uint64_t pixels);
  void emit_pixel_taps(size_t index, const Env& env, const TileRun& run, uint64_t pixels);
  void emit_inside(const Env& env, const TileRun& run, uint64_t pixels);
  void emit_tap(const Env& env, uint64_t pixels, int64_t width);
  void hold_back_loads(int64_t width);
  Value* combined(int64_t pixel, int64_t width);

  // Epilogues row by row (window_rest.cpp).
  void find_rest(int64_t width);
  bool data_pass_l1() const;
  void emit_resting_rows(const Env& env, Value* r0, Value* r1);
  Value* rest_at(Value* row, Value* pixel);
  void rest_tile(int64_t width, Value* to);
  void finish_group(const Env& env, Value* from, int64_t count);
  void fetch_rows(const Env& env);
};

}  // namespace opfuse::cpu
