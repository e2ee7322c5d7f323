// Depthwise sums of codes (cpu/window/byte_window.hpp), all rows of one vector of channels.
#pragma once

#include <map>

#include "cpu/emit/contraction/product.hpp"
#include "cpu/emit/stage.hpp"
#include "cpu/window/byte_window.hpp"

namespace opfuse::cpu {

class ByteWindowEmitter {
 public:
  /// `width`: pixels per register tile; `bias`: number of the read that sums begin with (sum_start.hpp), -1: none.
  ByteWindowEmitter(Kernel& k, StageEmitter& stage, const WindowView& view, const ByteWindow& window, int64_t width,
                    int bias);

  /// Rows [r0, r1) of the channels in `env`, which are a whole vector.
  void emit(const Env& env, Value* r0, Value* r1);

 private:
  /// Equal tiles of a row.
  struct Run {
    int64_t begin = 0, end = 0, width = 1;
    std::map<int64_t, unsigned> words;  ///< by distance from the first output's first tap: which pixels are inside
  };
  using Rows = std::function<void(const Env&)>;

  Kernel& k_;
  StageEmitter& s_;
  const WindowView& view_;
  const ByteWindow& w_;
  int lanes_, bias_;
  Product product_;
  Value* padding_ = nullptr;  ///< words of taps outside, as they would lie in memory
  bool fills_ = false;        ///< they add something
  std::vector<Run> runs_;
  std::vector<llvm::AllocaInst*> sums_;
  std::map<std::array<int64_t, 3>, Factor> weights_;  ///< by row, shift and word
  Value* start_ = nullptr;                            ///< what sums begin with

  std::vector<Run> cut(int64_t width) const;
  Run run_of(int64_t at, int64_t width) const;
  Value* in_order_of_channels(Value* words) const;
  Value* load_words(const Operand& operand, int read, const Env& env, int64_t row, int64_t tap, unsigned inside,
                    Value* otherwise) const;
  void load_weights(const Env& env);
  void emit_row(const Env& env, bool whole);
  void emit_tile(const Env& env, const Run& run, bool whole);
  void add_row(const Env& env, const Run& run, int64_t row, bool outside);
  Value* row_inside(const Env& env, int64_t row) const;
};

}  // namespace opfuse::cpu
