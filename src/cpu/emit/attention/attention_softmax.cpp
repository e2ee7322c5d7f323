// Softmax over the rows of a tile, in place: scores become exp(score - maximum), the sum's reciprocal scales the
// result. With several blocks of keys the maximum grows from block to block; what was summed before is scaled by
// exp(old maximum - new maximum).
//
// The maximum starts at the lowest finite number: a row whose scores are all -inf has the sum 0 and becomes NaN, as
// 0 / 0 does, and so does a row with NaN or +inf in it.
#include <limits>

#include "base/fail.hpp"
#include "cpu/emit/attention/attention.hpp"
#include "cpu/emit/math/vector_math.hpp"

namespace opfuse::cpu {
namespace {

constexpr int64_t kChains = 4;  ///< vectors at once: an exponential is one long chain of dependent operations

}  // namespace

void AttentionEmitter::emit_softmax(const RowTile& tile, const KeyBlock& block) {
  const auto row_of = [&](Value* r) { return floats(scores_, k_.mul(r, k_.i64(score_stride_))); };
  k_.loop(k_.i64(0), k_.i64(rows_), 1, [&](Value* r) {
    Value* top = largest(row_of(r), block.count);
    if (blocks_) {
      Value* total = floats(tops_, k_.add(tile.slot, r));
      Value* before = load(total, 1);
      top = k_.b.CreateSelect(k_.b.CreateFCmpOGT(top, before), top, before);
      store(floats(factors_, r), emit_exp_below_zero(k_, k_.b.CreateFSub(before, top)));
      store(total, top);
    }
    store(floats(row_tops_, r), top);
  });
  k_.loop(k_.i64(0), k_.i64(rows_), 1, [&](Value* r) {
    Value* sum = exponentials(row_of(r), block.count, load(floats(row_tops_, r), 1));
    if (view_.weight) {
      change_weights(r, row_of(r), block.count, sum);
      if (codes_) return;
      sum = real(1, 1);
    }
    if (!blocks_) return store(floats(factors_, r), divisor(sum));
    Value* total = floats(sums_, k_.add(tile.slot, r));
    store(total, k_.fma(load(total, 1), load(floats(factors_, r), 1), sum));
  });
}

/// body(offset, width) for all vectors of a row, several at once where there are enough. Lanes behind the count are
/// in the row's memory.
void AttentionEmitter::sweep(Value* count, const std::function<void(Value*, int64_t)>& body) {
  const int64_t wide = kChains * lanes_;
  Value* whole = k_.mul(k_.div(count, k_.i64(wide)), k_.i64(wide));
  k_.loop(k_.i64(0), whole, wide, [&](Value* at) { body(at, wide); });
  k_.loop(whole, count, lanes_, [&](Value* at) { body(at, lanes_); });
}

/// The halves of a vector combined until one lane is left.
template <typename Combine>
Value* AttentionEmitter::fold(Value* x, int64_t width, const Combine& combine) {
  for (int64_t w = width_of(x); w > width; w /= 2) {
    std::vector<int> low, high;
    for (int64_t i = 0; i < w / 2; ++i) low.push_back(static_cast<int>(i)), high.push_back(static_cast<int>(i + w / 2));
    x = combine(k_.b.CreateShuffleVector(x, low), k_.b.CreateShuffleVector(x, high));
  }
  return width == 1 ? k_.b.CreateExtractElement(x, k_.i64(0)) : x;
}

/// NaN counts as nothing here: it reappears in the exponentials.
Value* AttentionEmitter::largest(Value* row, Value* count) {
  const auto larger = [&](Value* x, Value* y) { return k_.b.CreateSelect(k_.b.CreateFCmpOGT(x, y), x, y); };
  auto* best = k_.variable(vector_type());
  k_.b.CreateStore(real(std::numeric_limits<float>::lowest(), lanes_), best);
  sweep(count, [&](Value* at, int64_t width) {
    Value* x = fold(load(floats(row, at), width), lanes_, larger);
    k_.b.CreateStore(larger(x, k_.b.CreateLoad(vector_type(), best)), best);
  });
  return fold(k_.b.CreateLoad(vector_type(), best), 1, larger);
}

Value* AttentionEmitter::exponentials(Value* row, Value* count, Value* top) {
  const auto plus = [&](Value* x, Value* y) { return k_.b.CreateFAdd(x, y); };
  auto* sum = k_.variable(vector_type());
  k_.b.CreateStore(real(0, lanes_), sum);
  sweep(count, [&](Value* at, int64_t width) {
    Value* x = k_.b.CreateFSub(load(floats(row, at), width), k_.splat(top, static_cast<int>(width)));
    Value* e = emit_exp_below_zero(k_, x);
    store(floats(row, at), e);
    k_.b.CreateStore(plus(k_.b.CreateLoad(vector_type(), sum), fold(e, lanes_, plus)), sum);
  });
  return fold(k_.b.CreateLoad(vector_type(), sum), 1, plus);
}

/// Exponentials of a row become weights, divided as the law says and changed. Lanes behind the count are not summed.
void AttentionEmitter::change_weights(Value* r, Value* row, Value* count, Value* sum) {
  const auto width = static_cast<int>(lanes_);
  Value *all = k_.splat(sum, width), *zero = real(0, lanes_);
  Value* none = nullptr;  // rows that are 0
  if (view_.empty == EmptyRows::zero) none = k_.b.CreateFCmpOEQ(all, zero);
  if (view_.empty == EmptyRows::no_nan) none = k_.b.CreateNot(k_.b.CreateFCmpOGT(all, zero));
  const auto weight = [&](Value* at) {
    Value* quotient = k_.b.CreateFDiv(load(floats(row, at), lanes_), all);
    return none ? k_.b.CreateSelect(none, zero, quotient) : quotient;
  };
  if (codes_) return store_weight_codes(r, row, count, weight);
  const Env env = w_.fresh_env(width);
  sweep(count, [&](Value* at, int64_t lanes) {
    for (int64_t l = 0; l < lanes; l += lanes_) {
      Value* here = k_.add(at, k_.i64(l));
      store(floats(row, here), k_.splat(w_.at(env, {weight(here)}).emit(view_.weight, DType::f32), width));
    }
  });
}

/// 1 / sum; see EmptyRows. A row with NaN has the sum NaN, one without keys the sum 0.
Value* AttentionEmitter::divisor(Value* sum) {
  Value* inverse = k_.b.CreateFDiv(real(1, 1), sum);
  switch (view_.empty) {
    case EmptyRows::undefined:
      return inverse;
    case EmptyRows::zero:
      return k_.b.CreateSelect(k_.b.CreateFCmpOEQ(sum, real(0, 1)), real(0, 1), inverse);
    case EmptyRows::no_nan:
      return k_.b.CreateSelect(k_.b.CreateFCmpOGT(sum, real(0, 1)), inverse, real(0, 1));
  }
  throw fail(E::internal, "no way to treat empty rows: {}", static_cast<int>(view_.empty));
}

}  // namespace opfuse::cpu
