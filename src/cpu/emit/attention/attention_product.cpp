// The two products of attention in register tiles of `rows` rows x nv (nc) vectors, with the epilogues of scores and
// result.
#include <algorithm>
#include <limits>

#include "base/integers.hpp"
#include "cpu/emit/attention/attention.hpp"
#include "cpu/emit/fence.hpp"

namespace opfuse::cpu {
namespace {

constexpr int64_t kUnrolledSteps = 4;
constexpr size_t kTiedAccumulators = 6;

}  // namespace

/// acc[r][v] += sum over depth of left[r][step] * right[step][v]
void AttentionEmitter::multiply(Value* left, int64_t left_stride, Value* right, int64_t right_stride, int64_t vectors,
                                Value* depth) {
  const auto steps = [&](Value* first, int64_t count) {
    multiply_steps(floats(left, first), left_stride, floats(right, k_.mul(first, k_.i64(right_stride))), right_stride,
                   vectors, count);
  };
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(depth)) {
    const int64_t all = constant->getSExtValue(), whole = all / kUnrolledSteps * kUnrolledSteps;
    k_.loop(k_.i64(0), k_.i64(whole), kUnrolledSteps, [&](Value* step) { steps(step, kUnrolledSteps); });
    if (all > whole) steps(k_.i64(whole), all - whole);
    return;
  }
  Value* whole = k_.mul(k_.div(depth, k_.i64(kUnrolledSteps)), k_.i64(kUnrolledSteps));
  k_.loop(k_.i64(0), whole, kUnrolledSteps, [&](Value* step) { steps(step, kUnrolledSteps); });
  k_.loop(whole, depth, 1, [&](Value* step) { steps(step, 1); });
}

void AttentionEmitter::multiply_steps(Value* left, int64_t left_stride, Value* right, int64_t right_stride,
                                      int64_t vectors, int64_t steps) {
  std::vector<Value*> acc;
  for (int64_t i = 0; i < rows_ * vectors; ++i)
    acc.push_back(k_.b.CreateLoad(vector_type(), acc_[static_cast<size_t>(i)]));
  std::vector<Value**> last;
  for (size_t i = acc.size(); i-- > 0 && last.size() < kTiedAccumulators;) last.push_back(&acc[i]);
  for (int64_t u = 0; u < steps; ++u) {
    std::vector<Value*> columns;
    for (int64_t v = 0; v < vectors; ++v)
      columns.push_back(load(floats(right, k_.i64(u * right_stride + v * lanes_)), lanes_));
    for (int64_t r = 0; r < rows_; ++r) {
      Value* x = k_.splat(load(floats(left, k_.i64(r * left_stride + u)), 1), static_cast<int>(lanes_));
      for (int64_t v = 0; v < vectors; ++v) {
        Value*& sum = acc[static_cast<size_t>(r * vectors + v)];
        sum = k_.fma(x, columns[static_cast<size_t>(v)], sum);
      }
    }
    hold_back(k_, last);
  }
  for (size_t i = 0; i < acc.size(); ++i) k_.b.CreateStore(acc[i], acc_[i]);
}

void AttentionEmitter::emit_scores(const Env& env, const RowTile& tile, const KeyBlock& block) {
  const int64_t panel = nv_ * lanes_;
  if (llvm::isa<llvm::ConstantInt>(block.count)) {
    const int64_t whole = keys_ / panel * panel;
    k_.loop(k_.i64(0), k_.i64(whole), panel, [&](Value* at) { emit_score_panel(env, tile, block, at, nv_, false); });
    if (keys_ > whole)
      emit_score_panel(env, tile, block, k_.i64(whole), ceil_of(keys_ - whole, lanes_), keys_ % lanes_ != 0);
    return;
  }
  Value* whole = k_.mul(k_.div(block.count, k_.i64(panel)), k_.i64(panel));
  k_.loop(k_.i64(0), whole, panel, [&](Value* at) { emit_score_panel(env, tile, block, at, nv_, false); });
  k_.branch(k_.b.CreateICmpSLT(whole, block.count), [&] { emit_score_panel(env, tile, block, whole, nv_, true); });
}

/// Scores of keys behind the last one are -inf.
void AttentionEmitter::emit_score_panel(const Env& env, const RowTile& tile, const KeyBlock& block, Value* at,
                                        int64_t vectors, bool ragged) {
  if (codes_) {
    multiply_coded_scores(at, vectors);
  } else {
    for (int64_t i = 0; i < rows_ * vectors; ++i) k_.b.CreateStore(real(0, lanes_), acc_[static_cast<size_t>(i)]);
    multiply(queries_, depth_capacity_, floats(packed_keys_, k_.mul(at, k_.i64(depth_capacity_))), nv_ * lanes_,
             vectors, k_.i64(depth_));
  }
  const Expr& score = s_.stage.outputs[0].value;
  Env point = env;
  point.width = static_cast<int>(lanes_);
  for (int64_t v = 0; v < vectors; ++v) {
    Value* lane = k_.add(at, k_.i64(v * lanes_));
    point.mask = ragged ? lanes_below(lane, block.count) : nullptr;
    point.axes[static_cast<size_t>(view_.key_axis)] = {k_.add(block.first, lane), true, lanes_};
    for (int64_t r = 0; r < rows_; ++r) {
      point.axes[static_cast<size_t>(view_.row)] = row_at(tile, r);
      Value* sum = k_.b.CreateLoad(vector_type(), acc_[static_cast<size_t>(r * vectors + v)]);
      Value* value = k_.splat(s_.at(point, {sum}).emit(score, DType::f32), static_cast<int>(lanes_));
      if (point.mask)
        value = k_.b.CreateSelect(point.mask, value, real(-std::numeric_limits<double>::infinity(), lanes_));
      store(floats(scores_, k_.add(k_.i64(r * score_stride_), lane)), value);
    }
  }
}

void AttentionEmitter::emit_context(const Env& env, const RowTile& tile, const KeyBlock& block) {
  const int64_t panel = nc_ * lanes_, whole = columns_ / panel * panel;
  const Env at = context_env(env);
  k_.loop(k_.i64(0), k_.i64(whole), panel,
          [&](Value* column) { emit_context_panel(at, tile, block.count, column, nc_, false); });
  if (columns_ > whole)
    emit_context_panel(at, tile, block.count, k_.i64(whole), ceil_of(columns_ - whole, lanes_), columns_ % lanes_ != 0);
}

/// `ragged`: the last vector has lanes behind the columns.
void AttentionEmitter::emit_context_panel(const Env& env, const RowTile& tile, Value* count, Value* at, int64_t vectors,
                                          bool ragged) {
  const auto result = [&](int64_t r, int64_t v) {
    Value* row = k_.mul(k_.add(tile.slot, k_.i64(r)), k_.i64(result_stride_));
    return floats(results_, k_.add(k_.add(row, at), k_.i64(v * lanes_)));
  };
  const auto factor = [&](int64_t r) { return load(floats(factors_, k_.i64(r)), 1); };
  if (codes_) {
    multiply_coded_context(at, vectors);
  } else {
    for (int64_t r = 0; r < rows_; ++r)
      for (int64_t v = 0; v < vectors; ++v) {
        Value* start = real(0, lanes_);
        if (blocks_) start = k_.b.CreateFMul(load(result(r, v), lanes_), k_.splat(factor(r), static_cast<int>(lanes_)));
        k_.b.CreateStore(start, acc_[static_cast<size_t>(r * vectors + v)]);
      }
    multiply(scores_, score_stride_, floats(packed_values_, k_.mul(at, k_.i64(key_capacity_))), nc_ * lanes_, vectors,
             count);
  }
  for (int64_t r = 0; r < rows_; ++r) {
    const auto sum = [&](int64_t v) {
      return k_.b.CreateLoad(vector_type(), acc_[static_cast<size_t>(r * vectors + v)]);
    };
    if (blocks_) {
      for (int64_t v = 0; v < vectors; ++v) store(result(r, v), sum(v));
      continue;
    }
    Env point = env;
    point.axes[static_cast<size_t>(view_.row)] = row_at(tile, r);
    k_.branch(exists(tile, r), [&] {
      for (int64_t v = 0; v < vectors; ++v)
        store_row(point, k_.add(at, k_.i64(v * lanes_)), sum(v), factor(r), ragged && v == vectors - 1);
    });
  }
}

void AttentionEmitter::store_row(Env env, Value* column, Value* value, Value* factor, bool ragged) {
  const auto width = static_cast<int>(lanes_);
  factor = k_.splat(factor, width);
  value = k_.b.CreateFMul(value, factor);
  if (view_.empty == EmptyRows::no_nan)
    value = k_.b.CreateSelect(k_.b.CreateFCmpOGT(factor, real(0, lanes_)), value, real(0, lanes_));
  env.axes[static_cast<size_t>(view_.column)] = {column, true, lanes_};
  if (ragged) env.mask = lanes_below(column, k_.i64(columns_));
  c_.store_outputs(env, {value});
}

}  // namespace opfuse::cpu
