// Attention: scores, softmax and the product with the values in one kernel. A part holds K and V of a head packed, and
// the scores of one tile of query rows.
//
//   scratch [panels of keys][d][nv vectors]         K, transposed
//           [panels of columns][keys][nc vectors]   V
//           [rows][d]                               queries of the tile
//           [rows][keys]                            its scores, then its weights before they are divided by their sum
//           [rows]                                  maxima of its rows
//           [rows]                                  factors of rows: 1 / sum, or what a new block scales earlier ones
//                                                   by; 1 where weights were changed, and so divided, before
//   and where the keys come in several blocks, for every row of a group
//           [group] x 2, [group][columns]           maximum, sum and result so far
#pragma once

#include "cpu/attention/attention_codes.hpp"
#include "cpu/attention/attention_scratch.hpp"
#include "cpu/emit/stage.hpp"
#include "kernel/attention_view.hpp"

namespace opfuse::cpu {

class AttentionEmitter {
 public:
  AttentionEmitter(Kernel& k, StageEmitter& scores, StageEmitter& weights, StageEmitter& context,
                   const AttentionView& view);

  Dim tiles() const;  ///< of query rows
  std::vector<int> batch_axes() const;
  /// Tiles [t0, t1) of the matrix that the batch axes of `env` (of the scores) say.
  void emit(const Env& env, Value* t0, Value* t1);

 private:
  /// Keys [first, first + count), at most `keys_`.
  struct KeyBlock {
    Value *first, *count;
  };
  /// Rows of a tile: m0 .. m0 + rows_ - 1 of the matrix, slot.. of the group.
  struct RowTile {
    Value *row, *slot;
  };
  /// An operand laid out for the register tile: vectors along axis `across`, one after the other along axis `along`.
  struct Packing {
    StageEmitter& stage;
    const Expr& value;
    int across, along;
    int64_t vectors;   ///< of a panel
    int64_t capacity;  ///< steps of a panel
  };

  Kernel& k_;
  StageEmitter &s_, &w_, &c_;  ///< scores, weights, context
  const AttentionView& view_;
  int64_t lanes_, rows_, nv_, nc_, depth_, columns_, keys_, group_;
  int64_t depth_capacity_, key_capacity_, score_stride_, result_stride_;
  bool blocks_;  ///< of keys: several
  std::optional<AttentionCodes> codes_;
  Value *packed_keys_, *packed_values_, *queries_, *scores_, *row_tops_, *factors_;
  Value *tops_ = nullptr, *sums_ = nullptr, *results_ = nullptr;
  std::vector<llvm::AllocaInst*> acc_;

  void place_scratch(const AttentionScratch& scratch);
  const Dim& rows() const { return s_.stage.domain[static_cast<size_t>(view_.row)]; }
  const Dim& keys() const { return s_.stage.domain[static_cast<size_t>(view_.key_axis)]; }
  llvm::Type* vector_type() { return k_.lanes(k_.b.getFloatTy(), static_cast<int>(lanes_)); }
  Value* floats(Value* base, Value* offset) { return k_.element(base, DType::f32, offset); }
  Value* real(double value, int64_t width);
  Value* load(Value* at, int64_t width);
  void store(Value* at, Value* value);
  Value* lanes_below(Value* first, Value* end);  ///< mask of lanes l with first + l < end
  bool whole_tiles() const;
  Value* exists(const RowTile& tile, int64_t r);
  AxisValue row_at(const RowTile& tile, int64_t r);
  Env context_env(const Env& scores) const;
  /// body(first lane, mask or null) for the vectors of [0, count).
  void vectors(Value* count, const std::function<void(Value*, Value*)>& body);

  // attention.cpp
  void emit_tile(const Env& env, const RowTile& tile, const KeyBlock& block);
  void emit_keys(const Env& env, const RowTile& tile, const KeyBlock& block);
  void emit_groups(const Env& env, Value* t0, Value* t1);
  void start_group(Value* slots);  ///< the first so many rows of the group
  void finish_group(const Env& env, Value* row, Value* count);

  // attention_mask.cpp
  bool mask_depends_on_row() const;
  Value* needed_keys(const Env& env, const RowTile& tile, const KeyBlock& block);
  Value* every_row_has_keys(const RowTile& tile, int64_t rows, Value* seen);

  // attention_pack.cpp
  void pack_block(const Env& env, const KeyBlock& block);
  void pack(const Packing& p, const Env& env, const KeyBlock& across, const KeyBlock& along, Value* to);
  void pack_straight(const Packing& p, const Env& env, const KeyBlock& across, const KeyBlock& along, Value* to);
  void pack_transposed(const Packing& p, const Env& env, const KeyBlock& across, const KeyBlock& along, Value* to);
  bool lies_along(const Packing& p) const;
  Value* panel_vector(const Packing& p, Value* lane, Value* to);
  void pack_queries(const Env& env, const RowTile& tile);

  // attention_product.cpp
  void multiply(Value* left, int64_t left_stride, Value* right, int64_t right_stride, int64_t vectors, Value* depth);
  void multiply_steps(Value* left, int64_t left_stride, Value* right, int64_t right_stride, int64_t vectors,
                      int64_t steps);
  void emit_scores(const Env& env, const RowTile& tile, const KeyBlock& block);
  void emit_score_panel(const Env& env, const RowTile& tile, const KeyBlock& block, Value* at, int64_t vectors,
                        bool ragged);
  void emit_context(const Env& env, const RowTile& tile, const KeyBlock& block);
  void emit_context_panel(const Env& env, const RowTile& tile, Value* count, Value* at, int64_t vectors, bool ragged);
  void store_row(Env env, Value* column, Value* value, Value* factor, bool ragged);

  // attention_codes.cpp
  llvm::Type* words_type();
  Value* bytes_at(Value* base, Value* offset);
  Value* zero_of(StageEmitter& stage, const CodedFactor& factor, bool raise);
  Value* scale_of(StageEmitter& stage, const CodedFactor& factor);
  Value* codes(StageEmitter& stage, const CodedFactor& factor, const Env& point, bool raise,
               const std::vector<Value*>& results = {});
  Value* each_depth(StageEmitter& stage, const CodedFactor& factor, Env point, bool raise,
                    const std::function<void(int64_t, Value*)>& body);
  Value* behind(Value* packed, int64_t across, int64_t capacity);
  Value* interleaved(const std::vector<Value*>& rows);
  void pack_coded_keys(const Env& env, const KeyBlock& block);
  void pack_coded_values(const Env& env, const KeyBlock& block);
  void pack_coded_queries(const Env& env, const RowTile& tile);
  void multiply_codes(Value* left, int64_t left_stride, Value* right, int64_t right_stride, int64_t vectors,
                      int64_t words);
  void multiply_coded_scores(Value* at, int64_t vectors);
  void multiply_coded_context(Value* at, int64_t vectors);
  void scale_sums(int64_t vectors, Value* left, Value* right);
  void store_weight_codes(Value* r, Value* row, Value* count, const std::function<Value*(Value*)>& weight);

  // attention_softmax.cpp
  void emit_softmax(const RowTile& tile, const KeyBlock& block);
  void sweep(Value* count, const std::function<void(Value*, int64_t)>& body);
  template <typename Combine>
  Value* fold(Value* x, int64_t width, const Combine& combine);
  Value* largest(Value* row, Value* count);
  Value* exponentials(Value* row, Value* count, Value* top);
  Value* divisor(Value* sum);
  void change_weights(Value* r, Value* row, Value* count, Value* sum);
};

}  // namespace opfuse::cpu
