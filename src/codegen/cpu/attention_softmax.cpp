// Softmax over the rows of a tile, in place: scores become exp(score - maximum), the sum's reciprocal scales the
// result. With several blocks of keys the maximum grows from block to block; what was summed before is scaled by
// exp(old maximum - new maximum).
//
// The maximum starts at the lowest finite number: a row whose scores are all -inf has the sum 0 and becomes NaN, as
// 0 / 0 does, and so does a row with NaN or +inf in it.
#include <limits>

#include "codegen/cpu/attention.hpp"
#include "codegen/cpu/vector_math.hpp"

namespace opfuse::cpu {

void AttentionEmitter::emit_softmax(const RowTile& tile, const KeyBlock& block) {
  k_.loop(k_.i64(0), k_.i64(rows_), 1, [&](Value* r) {
    Value* row = floats(scores_, k_.mul(r, k_.i64(score_stride_)));
    Value* top = largest(row, block.count);
    Value* slot = k_.add(tile.slot, r);
    if (!blocks_) {
      store(floats(factors_, r), divisor(exponentials(row, block.count, top)));
      return;
    }
    Value* before = load(floats(tops_, slot), 1);
    top = k_.b.CreateSelect(k_.b.CreateFCmpOGT(top, before), top, before);
    Value* scale = emit_exp_below_zero(k_, k_.b.CreateFSub(before, top));
    Value* sum = exponentials(row, block.count, top);
    store(floats(tops_, slot), top);
    store(floats(sums_, slot), k_.fma(load(floats(sums_, slot), 1), scale, sum));
    store(floats(factors_, r), scale);
  });
}

/// NaN counts as nothing here: it reappears in the exponentials.
Value* AttentionEmitter::largest(Value* row, Value* count) {
  Value* start = real(std::numeric_limits<float>::lowest(), lanes_);
  auto* best = k_.variable(vector_type());
  k_.b.CreateStore(start, best);
  k_.loop(k_.i64(0), count, lanes_, [&](Value* at) {
    Value* x = load(floats(row, at), lanes_);
    Value* y = k_.b.CreateLoad(vector_type(), best);
    k_.b.CreateStore(k_.b.CreateSelect(k_.b.CreateFCmpOGT(x, y), x, y), best);
  });
  return combine_lanes(k_, ReduceKind::max, DType::f32, k_.b.CreateLoad(vector_type(), best));
}

Value* AttentionEmitter::exponentials(Value* row, Value* count, Value* top) {
  auto* sum = k_.variable(vector_type());
  k_.b.CreateStore(real(0, lanes_), sum);
  top = k_.splat(top, static_cast<int>(lanes_));
  k_.loop(k_.i64(0), count, lanes_, [&](Value* at) {
    Value* x = load(floats(row, at), lanes_);
    Value* e = emit_exp_below_zero(k_, k_.b.CreateFSub(x, top));
    store(floats(row, at), e);
    k_.b.CreateStore(k_.b.CreateFAdd(k_.b.CreateLoad(vector_type(), sum), e), sum);
  });
  return combine_lanes(k_, ReduceKind::sum, DType::f32, k_.b.CreateLoad(vector_type(), sum));
}

/// 1 / sum; where undefined rows become zeros, 0 for them.
Value* AttentionEmitter::divisor(Value* sum) {
  Value* inverse = k_.b.CreateFDiv(real(1, 1), sum);
  if (!view_.guarded) return inverse;
  return k_.b.CreateSelect(k_.b.CreateFCmpOGT(sum, real(0, 1)), inverse, real(0, 1));
}

}  // namespace opfuse::cpu
