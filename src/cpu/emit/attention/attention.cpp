//   parts: batch x tiles of query rows
//   for matrices of the part:
//     pack K and V                                     all keys fit one block
//     for tiles: queries, scores, softmax, result
//   or, where keys come in blocks (long rows, lengths known only at run time):
//     for groups of tiles:
//       for blocks of keys: pack; for tiles of the group: queries, scores, softmax so far, result so far
//       divide by the sums
#include "cpu/emit/attention/attention.hpp"

#include <limits>

#include "base/fail.hpp"
#include "base/integers.hpp"
#include "cpu/emit/emitters.hpp"
#include "cpu/emit/parts.hpp"

namespace opfuse::cpu {
namespace {

constexpr int64_t kUnrolledVectors = 8;

}  // namespace

AttentionEmitter::AttentionEmitter(Kernel& k, StageEmitter& scores, StageEmitter& weights, StageEmitter& context,
                                   const AttentionView& view)
    : k_(k), s_(scores), w_(weights), c_(context), view_(view) {
  const auto s = typed<AttentionSchedule>(k.spec.schedule);
  lanes_ = lanes_of(k.target);
  rows_ = s.rows;
  nv_ = s.nv;
  nc_ = s.nc;
  keys_ = s.keys;
  blocks_ = s.group > 0;
  group_ = group_rows(s);
  depth_ = view.head_size(k.spec.region);
  columns_ = view.columns(k.spec.region);
  OPFUSE_CHECK(!(blocks_ && view.weight), "weights are changed before all keys of a row are summed");
  OPFUSE_CHECK(blocks_ || keys() == Dim(keys_), "{} keys in a block of {}", keys().text(), keys_);
  codes_ = attention_codes(k.spec.region, view, k.target);
  place_scratch(attention_scratch(s, view, k.spec.region, k.target));
  for (int64_t i = 0; i < rows_ * std::max(nv_, nc_); ++i) acc_.push_back(k.variable(vector_type()));
}

void AttentionEmitter::place_scratch(const AttentionScratch& scratch) {
  depth_capacity_ = scratch.depth_capacity;
  key_capacity_ = scratch.key_capacity;
  score_stride_ = scratch.score_stride;
  result_stride_ = scratch.result_stride;
  int64_t at = 0;
  const auto place = [&](int64_t count) {
    Value* here = floats(k_.scratch, k_.i64(at));
    at += ceil_of(count, k_.target.line_floats()) * k_.target.line_floats();
    return here;
  };
  packed_keys_ = place(scratch.packed_keys);
  packed_values_ = place(scratch.packed_values);
  queries_ = place(scratch.queries);
  scores_ = place(scratch.scores);
  row_tops_ = place(scratch.rows);
  factors_ = place(scratch.rows);
  if (blocks_) {
    tops_ = place(scratch.group);
    sums_ = place(scratch.group);
    results_ = place(scratch.results);
  }
  k_.scratch_bytes = at * 4;
  OPFUSE_CHECK(k_.scratch_bytes == scratch.bytes(k_.target), "{} bytes of scratch, {} foretold", k_.scratch_bytes,
               scratch.bytes(k_.target));
}

Dim AttentionEmitter::tiles() const { return ceil_div(rows(), Dim(rows_)); }

std::vector<int> AttentionEmitter::batch_axes() const {
  std::vector<int> axes;
  for (int axis = 0; axis < view_.row; ++axis) axes.push_back(axis);
  return axes;
}

Value* AttentionEmitter::real(double value, int64_t width) {
  return llvm::ConstantFP::get(k_.lanes(k_.b.getFloatTy(), static_cast<int>(width)), value);
}

Value* AttentionEmitter::load(Value* at, int64_t width) {
  return k_.b.CreateAlignedLoad(k_.lanes(k_.b.getFloatTy(), static_cast<int>(width)), at, llvm::Align(4));
}

void AttentionEmitter::store(Value* at, Value* value) { k_.b.CreateAlignedStore(value, at, llvm::Align(4)); }

Value* AttentionEmitter::lanes_below(Value* first, Value* end) {
  const auto width = static_cast<int>(lanes_);
  auto* type = k_.b.getInt32Ty();
  Value* left = k_.b.CreateTrunc(k_.sub(end, first), type);
  return k_.b.CreateICmpSLT(k_.b.CreateTrunc(k_.iota(width), k_.lanes(type, width)), k_.splat(left, width));
}

void AttentionEmitter::vectors(Value* count, const std::function<void(Value*, Value*)>& body) {
  const auto constant = llvm::dyn_cast<llvm::ConstantInt>(count);
  if (constant && constant->getSExtValue() <= kUnrolledVectors * lanes_) {
    const int64_t all = constant->getSExtValue();
    for (int64_t at = 0; at < all; at += lanes_)
      body(k_.i64(at), at + lanes_ <= all ? nullptr : lanes_below(k_.i64(at), count));
    return;
  }
  Value* whole = k_.mul(k_.b.CreateUDiv(count, k_.i64(lanes_)), k_.i64(lanes_));
  k_.loop(k_.i64(0), whole, lanes_, [&](Value* at) { body(at, nullptr); });
  if (constant && constant->getSExtValue() % lanes_ == 0) return;
  k_.branch(k_.b.CreateICmpSLT(whole, count), [&] { body(whole, lanes_below(whole, count)); });
}

bool AttentionEmitter::whole_tiles() const {
  const auto extent = rows().constant();
  return extent && *extent % rows_ == 0;
}

/// Row r of the tile is one of the matrix, not a repetition of the last one.
Value* AttentionEmitter::exists(const RowTile& tile, int64_t r) {
  if (whole_tiles() || r == 0) return k_.b.getTrue();
  return k_.b.CreateICmpSLT(k_.add(tile.row, k_.i64(r)), k_.dim(rows()));
}

/// Rows behind the last one repeat it; they are computed, not stored.
AxisValue AttentionEmitter::row_at(const RowTile& tile, int64_t r) {
  if (whole_tiles()) return {tile.row, false, rows_, r};
  Value* last = k_.sub(k_.dim(rows()), k_.i64(1));
  return {k_.min(k_.add(tile.row, k_.i64(r)), last), false, 1};
}

Env AttentionEmitter::context_env(const Env& scores) const {
  Env env = c_.fresh_env(static_cast<int>(lanes_));
  for (int axis : batch_axes()) env.axes[static_cast<size_t>(axis)] = scores.axes[static_cast<size_t>(axis)];
  return env;
}

void AttentionEmitter::emit(const Env& env, Value* t0, Value* t1) {
  if (blocks_) return emit_groups(env, t0, t1);
  const KeyBlock all{k_.i64(0), k_.i64(keys_)};
  pack_block(env, all);
  k_.loop(t0, t1, 1, [&](Value* t) { emit_tile(env, {k_.mul(t, k_.i64(rows_)), k_.i64(0)}, all); });
}

void AttentionEmitter::emit_groups(const Env& env, Value* t0, Value* t1) {
  const int64_t tiles = group_ / rows_;
  Value* blocks = k_.dim(ceil_div(keys(), Dim(keys_)));
  k_.loop(t0, t1, tiles, [&](Value* t) {
    Value* count = k_.min(k_.i64(tiles), k_.sub(t1, t));
    Value* row = k_.mul(t, k_.i64(rows_));
    start_group(k_.mul(count, k_.i64(rows_)));
    k_.loop(k_.i64(0), blocks, 1, [&](Value* b) {
      Value* first = k_.mul(b, k_.i64(keys_));
      const KeyBlock block{first, k_.min(k_.i64(keys_), k_.sub(k_.dim(keys()), first))};
      pack_block(env, block);
      k_.loop(k_.i64(0), count, 1, [&](Value* i) {
        Value* slot = k_.mul(i, k_.i64(rows_));
        emit_tile(env, {k_.add(row, slot), slot}, block);
      });
    });
    finish_group(env, row, k_.min(k_.mul(count, k_.i64(rows_)), k_.sub(k_.dim(rows()), row)));
  });
}

void AttentionEmitter::emit_tile(const Env& env, const RowTile& tile, const KeyBlock& block) {
  if (!view_.needed || codes_) return emit_keys(env, tile, block);
  const KeyBlock some{block.first, needed_keys(env, tile, block)};
  k_.branch(
      k_.b.CreateICmpEQ(some.count, block.count), [&] { emit_keys(env, tile, block); },
      [&] { k_.branch(k_.b.CreateICmpSGT(some.count, k_.i64(0)), [&] { emit_keys(env, tile, some); }); });
}

void AttentionEmitter::emit_keys(const Env& env, const RowTile& tile, const KeyBlock& block) {
  pack_queries(env, tile);
  emit_scores(env, tile, block);
  emit_softmax(tile, block);
  emit_context(env, tile, block);
}

/// Without keys the sum of products is 0, not 0 / 0.
void AttentionEmitter::start_group(Value* slots) {
  Value* none = k_.b.CreateICmpEQ(k_.dim(keys()), k_.i64(0));
  Value* sum = k_.b.CreateSelect(none, real(1, 1), real(0, 1));
  k_.loop(k_.i64(0), slots, 1, [&](Value* slot) {
    store(floats(tops_, slot), real(std::numeric_limits<float>::lowest(), 1));
    store(floats(sums_, slot), sum);
  });
  k_.loop(k_.i64(0), k_.mul(slots, k_.i64(result_stride_)), lanes_,
          [&](Value* at) { store(floats(results_, at), real(0, lanes_)); });
}

void AttentionEmitter::finish_group(const Env& env, Value* row, Value* count) {
  k_.loop(k_.i64(0), count, 1, [&](Value* slot) {
    Env at = context_env(env);
    at.axes[static_cast<size_t>(view_.row)] = {k_.add(row, slot), false, 1};
    Value* factor = divisor(load(floats(sums_, slot), 1));
    Value* result = floats(results_, k_.mul(slot, k_.i64(result_stride_)));
    vectors(k_.i64(columns_), [&](Value* column, Value* mask) {
      store_row(at, column, load(floats(result, column), lanes_), factor, mask != nullptr);
    });
  });
}

void emit_attention(Kernel& k) {
  const auto found = view_attention(k.spec.region);
  OPFUSE_CHECK(std::holds_alternative<AttentionView>(found), "{}", std::get<std::string>(found));
  const Operand none;  // scores and weights are never addressed as tensors
  const StageEmitter::Locals locals{{{0, 0}, none}, {{1, 0}, none}};
  StageEmitter scores(k, 0, locals), weights(k, 1, locals), context(k, 2, locals);
  AttentionEmitter emitter(k, scores, weights, context, std::get<AttentionView>(found));
  emit_tiled_parts(k, scores.fresh_env(1), emitter.batch_axes(), Dim(1), emitter.tiles(),
                   [&](const Env& env, PartRange, PartRange tiles) { emitter.emit(env, tiles.begin, tiles.end); });
}

}  // namespace opfuse::cpu
