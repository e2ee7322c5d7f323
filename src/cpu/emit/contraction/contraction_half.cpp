// Blocks of output channels, of which the last may have code of its own: it computes only the vectors that hold
// outputs, and where half a vector holds the last ones, two pixels share it (AVX-512, knob "half"):
//
//   w        = [w0 .. w7 | w0 .. w7]                 one load
//   x        = [x(p) ..  | x(p+1) ..]                a masked move of one broadcast into another, both used above
//   acc[p]  += x * w                                 sums of pixel p below, of pixel p+1 above
//
// So a pair of pixels takes one multiply-add of that vector instead of two; the epilogue splits them.
#include <algorithm>
#include <utility>

#include "base/integers.hpp"
#include "cpu/contraction/contraction_schedule.hpp"
#include "cpu/emit/contraction/contraction.hpp"
#include "cpu/emit/fence.hpp"

namespace opfuse::cpu {

void ContractionEmitter::emit_blocks(const Env& env, Value* ob0, Value* ob1, Value* i0, Value* i1) {
  const int64_t used = ceil_of(axis_extent(s_.stage, view_.vec).value(), lanes_), whole = (used - 1) / vectors_;
  const int64_t rest = used - whole * vectors_;
  const auto at = [&](Value* ob) { emit_block(env, ob, i0, i1); };
  int64_t stored = 1;  // blocks of the results: their padding lanes are written too
  for (const Operand& o : s_.outputs)
    for (const Block& b : o.layout.blocks) stored = std::max(stored, b.factor);
  const bool half = typed<ContractionSchedule>(k_.spec.schedule).half != 0;
  if ((rest == vectors_ && !half) || stored > lanes_) return k_.loop(ob0, ob1, 1, at);
  tail_apart_ = true;
  if (whole > 0) k_.loop(ob0, k_.min(ob1, k_.i64(whole)), 1, at);
  const int64_t all = std::exchange(vectors_, rest);
  in_tail_ = true;
  half_ = half;
  k_.loop(k_.max(ob0, k_.i64(whole)), ob1, 1, at);
  vectors_ = all;
  tail_apart_ = in_tail_ = half_ = false;
}

/// A pair of pixels has the first one's.
size_t ContractionEmitter::place_of(int64_t pixel, int64_t vector) const {
  const bool paired = half_ && vector + 1 == vectors_;
  return static_cast<size_t>((paired ? pixel / 2 * 2 : pixel) * vectors_of_weights() + vector);
}

bool ContractionEmitter::unused(int64_t place) const {
  return half_ && place % vectors_ + 1 == vectors_ && place / vectors_ % 2;
}

Value* ContractionEmitter::half_weights(Value* at) {
  const auto lanes = static_cast<int>(lanes_);
  Value* half = k_.b.CreateAlignedLoad(k_.lanes(k_.memory_type(types().weights), lanes / 2), at, weight_align());
  std::vector<int> twice;
  for (int l = 0; l < lanes; ++l) twice.push_back(l % (lanes / 2));
  return k_.b.CreateShuffleVector(half, twice);
}

/// `first` keeps the first pixel's value until the second one comes. Where that is masked, or there is none, its sums
/// stay as they are.
void ContractionEmitter::multiply_half(std::vector<Value*>& acc, Value* x, Value*& first, Value* w, int64_t pixel,
                                       uint64_t pixels) {
  const bool second = pixel % 2 != 0, both = (pixels >> (pixel ^ 1) & 1) != 0;
  if (both && !second) {
    first = x;
    return;
  }
  Value* own = opaque(k_, k_.b.getInt16(second ? 0xFF00 : 0x00FF));
  own = k_.b.CreateBitCast(own, k_.lanes(k_.b.getInt1Ty(), static_cast<int>(lanes_)));
  Value*& a = acc[place_of(pixel, vectors_ - 1)];
  if (!both) {
    a = k_.b.CreateSelect(own, k_.fma(x, w, a), a);
    return;
  }
  x = k_.b.CreateSelect(own, x, first);
  a = keep_until(k_, x, k_.fma(x, w, a));
}

/// What lies above a pixel's channels is not stored.
void ContractionEmitter::split_pairs(const TileRun& run) {
  std::vector<int> upper;
  for (int64_t l = 0; l < lanes_; ++l) upper.push_back(static_cast<int>(lanes_ / 2 + l % (lanes_ / 2)));
  const int64_t v = vectors_ - 1;
  for (int64_t p = 1; p < run.width * tile_rows_; p += 2) {
    Value* both = k_.b.CreateLoad(acc_[0]->getAllocatedType(), acc_[place_of(p, v)]);
    k_.b.CreateStore(k_.b.CreateShuffleVector(both, upper), acc_[static_cast<size_t>(p * vectors_ + v)]);
  }
}

}  // namespace opfuse::cpu
