// Keys that no row of a tile needs. Masks are operands, so which keys they leave is seen when the kernel runs: behind
// the last key that some row of the tile needs (causal masks, padding at the end) nothing is computed.
//
// A masked score is -1e30 or less, and so has the weight 0 beside any other; a row whose scores are all masked gives
// them equal weights, so its tile keeps all keys.
#include "cpu/emit/attention/attention.hpp"
#include "region/dependence.hpp"

namespace opfuse::cpu {

bool AttentionEmitter::mask_depends_on_row() const { return axes_of(s_.stage, view_.needed).contains(view_.row); }

/// How many keys of the block the tile needs.
Value* AttentionEmitter::needed_keys(const Env& env, const RowTile& tile, const KeyBlock& block) {
  const int64_t rows = mask_depends_on_row() ? rows_ : 1;
  auto* last = k_.variable(k_.b.getInt64Ty());
  auto* seen = k_.variable(k_.b.getInt32Ty());
  k_.b.CreateStore(k_.i64(0), last);
  k_.b.CreateStore(k_.b.getInt32(0), seen);
  vectors(block.count, [&](Value* at, Value* mask) {
    Env point = env;
    point.width = static_cast<int>(lanes_);
    point.mask = mask;
    point.axes[static_cast<size_t>(view_.key_axis)] = {k_.add(block.first, at), true, lanes_};
    for (int64_t r = 0; r < rows; ++r) {
      point.axes[static_cast<size_t>(view_.row)] = row_at(tile, r);
      Value* needed = k_.splat(s_.at(point).emit(view_.needed, DType::boolean), static_cast<int>(lanes_));
      if (mask) needed = k_.b.CreateAnd(needed, mask);
      Value* bits = k_.b.CreateBitCast(needed, k_.b.getIntNTy(static_cast<unsigned>(lanes_)));
      Value* any = k_.b.CreateICmpNE(bits, k_.zero(bits->getType()));
      Value* row = k_.b.CreateShl(k_.b.CreateZExt(any, k_.b.getInt32Ty()), static_cast<uint64_t>(r));
      k_.b.CreateStore(k_.b.CreateOr(k_.b.CreateLoad(k_.b.getInt32Ty(), seen), row), seen);
      Value* before = k_.b.CreateLoad(k_.b.getInt64Ty(), last);
      k_.b.CreateStore(k_.b.CreateSelect(any, k_.add(at, k_.i64(lanes_)), before), last);
    }
  });
  Value* end = k_.min(k_.b.CreateLoad(k_.b.getInt64Ty(), last), block.count);
  Value* all = every_row_has_keys(tile, rows, k_.b.CreateLoad(k_.b.getInt32Ty(), seen));
  return k_.b.CreateSelect(all, end, block.count);
}

/// In this block (bits of `seen`) or in an earlier one.
Value* AttentionEmitter::every_row_has_keys(const RowTile& tile, int64_t rows, Value* seen) {
  const auto bit = [&](int64_t r) {
    Value* mask = k_.b.getInt32(1U << static_cast<unsigned>(rows == 1 ? 0 : r));
    return k_.b.CreateICmpNE(k_.b.CreateAnd(seen, mask), k_.b.getInt32(0));
  };
  Value* all = k_.b.getTrue();
  for (int64_t r = 0; r < (blocks_ ? rows_ : rows); ++r) {
    Value* has = bit(r);
    if (blocks_) {
      Value* top = load(floats(tops_, k_.add(tile.slot, k_.i64(r))), 1);
      has = k_.b.CreateOr(has, k_.b.CreateFCmpOGT(top, real(-1e29, 1)));
    }
    all = k_.b.CreateAnd(all, has);
  }
  return all;
}

}  // namespace opfuse::cpu
