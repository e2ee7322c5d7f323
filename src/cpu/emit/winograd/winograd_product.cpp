// The products of one block of output channels: for every point of the tile a small matrix product over the channels,
//   sums[tile][output] = sum over c of data[c][tile] * weights[c][output]
// in register tiles of `width` tiles x `vectors` vectors. The last register tile of a chunk overlaps the one before it.
#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "cpu/emit/fence.hpp"
#include "cpu/emit/winograd/winograd.hpp"

namespace opfuse::cpu {
namespace {

constexpr size_t kTiedAccumulators = 6;

}  // namespace

void WinogradEmitter::emit_products(Value* ob, Value* count) {
  const std::vector<Dim>& strides = weights().strides;  // [O/block][points_h][points_w][C][block]
  Value* first = floats(weights().base, k_.mul(ob, k_.dim(strides[0])));
  Value* last = k_.max(k_.i64(0), k_.sub(count, k_.i64(width_)));
  const int64_t fetched =
      (channels_ + kWinogradUnrolled - 1) / kWinogradUnrolled * prefetched_ * k_.target.line_floats();
  k_.loop(k_.i64(0), k_.i64(points_), 1, [&](Value* point) {
    Value* w = floats(first, k_.mul(point, k_.dim(strides[2])));
    Value* data = floats(data_, k_.mul(point, k_.i64(data_point_)));
    Value* sums = floats(sums_, k_.mul(point, k_.i64(sum_point_)));
    Value* ahead = floats(w, k_.dim(strides[2]));
    k_.loop(k_.i64(0), count, width_, [&](Value* t) {
      Value* tile = k_.min(t, last);
      Value* pass = k_.div(t, k_.i64(width_));
      emit_register_tile(floats(data, k_.mul(tile, k_.i64(lanes_))), w, floats(sums, k_.mul(tile, k_.i64(block_))),
                         floats(ahead, k_.mul(pass, k_.i64(fetched))));
    });
  });
}

void WinogradEmitter::emit_register_tile(Value* data, Value* w, Value* sums, Value* ahead) {
  for (llvm::AllocaInst* acc : acc_) k_.b.CreateStore(k_.zero(vector_type()), acc);
  const auto steps = [&](Value* vector, int64_t lanes) {
    Value* d = floats(data, k_.mul(vector, k_.i64(capacity_ * lanes_)));
    Value* first = k_.mul(vector, k_.i64(lanes_));
    Value* at = floats(w, k_.mul(first, k_.i64(block_)));
    Value* far = floats(ahead, k_.mul(first, k_.i64(prefetched_ * k_.target.line_floats() / kWinogradUnrolled)));
    const auto group = [&](Value* lane, int64_t count) {
      Value* fetch = floats(far, k_.mul(lane, k_.i64(prefetched_ * k_.target.line_floats() / kWinogradUnrolled)));
      for (int64_t line = 0; line < prefetched_; ++line)
        k_.b.CreateIntrinsic(llvm::Intrinsic::prefetch, {k_.b.getPtrTy()},
                             {floats(fetch, k_.i64(line * k_.target.line_floats())), k_.b.getInt32(0), k_.b.getInt32(2),
                              k_.b.getInt32(1)});
      emit_steps(d, at, lane, count);
    };
    const int64_t whole = lanes / kWinogradUnrolled * kWinogradUnrolled;
    k_.loop(k_.i64(0), k_.i64(whole), kWinogradUnrolled, [&](Value* lane) { group(lane, kWinogradUnrolled); });
    if (lanes > whole) group(k_.i64(whole), lanes - whole);
  };
  k_.loop(k_.i64(0), k_.i64(channels_ / lanes_), 1, [&](Value* vector) { steps(vector, lanes_); });
  if (channels_ % lanes_) steps(k_.i64(channels_ / lanes_), channels_ % lanes_);
  for (int64_t t = 0; t < width_; ++t)
    for (int64_t v = 0; v < vectors_; ++v)
      store_vector(floats(sums, k_.i64(t * block_ + v * lanes_)),
                   k_.b.CreateLoad(vector_type(), acc_[static_cast<size_t>(t * vectors_ + v)]));
}

void WinogradEmitter::emit_steps(Value* data, Value* w, Value* lane, int64_t lanes) {
  data = floats(data, lane);
  w = floats(w, k_.mul(lane, k_.i64(block_)));
  std::vector<Value*> acc;
  for (llvm::AllocaInst* a : acc_) acc.push_back(k_.b.CreateLoad(vector_type(), a));
  std::vector<Value**> last;
  for (size_t i = acc.size(); i-- > 0 && last.size() < kTiedAccumulators;) last.push_back(&acc[i]);
  for (int64_t u = 0; u < lanes; ++u) {
    std::vector<Value*> vectors;
    for (int64_t v = 0; v < vectors_; ++v) vectors.push_back(load_vector(floats(w, k_.i64(u * block_ + v * lanes_))));
    for (int64_t t = 0; t < width_; ++t) {
      Value* x = k_.b.CreateAlignedLoad(k_.b.getFloatTy(), floats(data, k_.i64(t * lanes_ + u)), llvm::Align(4));
      x = k_.splat(x, static_cast<int>(lanes_));
      for (int64_t v = 0; v < vectors_; ++v) {
        Value*& sum = acc[static_cast<size_t>(t * vectors_ + v)];
        sum = k_.fma(x, vectors[static_cast<size_t>(v)], sum);
      }
    }
    hold_back(k_, last);
  }
  for (size_t i = 0; i < acc.size(); ++i) k_.b.CreateStore(acc[i], acc_[i]);
}

}  // namespace opfuse::cpu
