// The products of one block of output channels: for every point of the tile a small matrix product over the channels,
//   sums[tile][output] = sum over c of data[c][tile] * weights[c][output]
// in register tiles of `width` tiles x `vectors` vectors. The last register tile of a chunk overlaps the one before it.
#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "cpu/emit/fence.hpp"
#include "cpu/emit/multiply_pairs.hpp"
#include "cpu/emit/winograd/winograd.hpp"

namespace opfuse::cpu {
namespace {

constexpr size_t kTiedAccumulators = 6;

}  // namespace

void WinogradEmitter::emit_products(Value* ob, Value* count) {
  const std::vector<Dim>& strides = weights().strides;  // [O/block][points_h][points_w][C][block], of codes in bytes
  const auto elements = [&](Value* from, const Dim& stride, Value* count) {
    return k_.element(from, view_.contraction.types.weights, k_.mul(count, k_.dim(stride)));
  };
  Value* first = elements(weights().base, strides[0], ob);
  Value* last = k_.max(k_.i64(0), k_.sub(count, k_.i64(width_)));
  const int64_t fetched = (words_ + kWinogradUnrolled - 1) / kWinogradUnrolled * prefetched_ * k_.target.line_floats();
  k_.loop(k_.i64(0), k_.i64(points_), 1, [&](Value* point) {
    Value* w = elements(first, strides[2], point);
    Value* data = words(data_, k_.mul(point, k_.i64(data_point_)));
    Value* sums = words(sums_, k_.mul(point, k_.i64(sum_point_)));
    Value* ahead = elements(w, strides[2], k_.i64(1));
    k_.loop(k_.i64(0), count, width_, [&](Value* t) {
      Value* tile = k_.min(t, last);
      Value* pass = k_.div(t, k_.i64(width_));
      emit_register_tile(words(data, k_.mul(tile, k_.i64(vector_words_))), w, words(sums, k_.mul(tile, k_.i64(block_))),
                         words(ahead, k_.mul(pass, k_.i64(fetched))));
    });
  });
}

void WinogradEmitter::emit_register_tile(Value* data, Value* w, Value* sums, Value* ahead) {
  for (llvm::AllocaInst* acc : acc_) k_.b.CreateStore(k_.zero(vector_type()), acc);
  const auto steps = [&](Value* vector, int64_t lanes) {
    Value* d = words(data, k_.mul(vector, k_.i64(capacity_ * vector_words_)));
    Value* first = k_.mul(vector, k_.i64(vector_words_));
    Value* at = words(w, k_.mul(first, k_.i64(block_)));
    Value* far = words(ahead, k_.mul(first, k_.i64(prefetched_ * k_.target.line_floats() / kWinogradUnrolled)));
    const auto group = [&](Value* lane, int64_t count) {
      Value* fetch = words(far, k_.mul(lane, k_.i64(prefetched_ * k_.target.line_floats() / kWinogradUnrolled)));
      for (int64_t line = 0; line < prefetched_; ++line)
        k_.b.CreateIntrinsic(llvm::Intrinsic::prefetch, {k_.b.getPtrTy()},
                             {words(fetch, k_.i64(line * k_.target.line_floats())), k_.b.getInt32(0), k_.b.getInt32(2),
                              k_.b.getInt32(1)});
      emit_steps(d, at, lane, count);
    };
    const int64_t whole = lanes / kWinogradUnrolled * kWinogradUnrolled;
    k_.loop(k_.i64(0), k_.i64(whole), kWinogradUnrolled, [&](Value* lane) { group(lane, kWinogradUnrolled); });
    if (lanes > whole) group(k_.i64(whole), lanes - whole);
  };
  k_.loop(k_.i64(0), k_.i64(words_ / vector_words_), 1, [&](Value* vector) { steps(vector, vector_words_); });
  if (words_ % vector_words_) steps(k_.i64(words_ / vector_words_), words_ % vector_words_);
  for (int64_t t = 0; t < width_; ++t)
    for (int64_t v = 0; v < vectors_; ++v)
      store_vector(words(sums, k_.i64(t * block_ + v * lanes_)),
                   k_.b.CreateLoad(vector_type(), acc_[static_cast<size_t>(t * vectors_ + v)]));
}

/// Of two channels of i16, added up in i32.
Value* WinogradEmitter::add_product(Value* x, Value* w, Value* sum) {
  if (!codes_) return k_.fma(x, w, sum);
  Value* product = multiply_pairs(k_, x, w);
  return keep_until(k_, product, k_.b.CreateAdd(sum, product));
}

void WinogradEmitter::emit_steps(Value* data, Value* w, Value* lane, int64_t lanes) {
  data = words(data, lane);
  w = words(w, k_.mul(lane, k_.i64(block_)));
  std::vector<Value*> acc;
  for (llvm::AllocaInst* a : acc_) acc.push_back(k_.b.CreateLoad(vector_type(), a));
  std::vector<Value**> last;
  for (size_t i = acc.size(); i-- > 0 && last.size() < kTiedAccumulators;) last.push_back(&acc[i]);
  for (int64_t u = 0; u < lanes; ++u) {
    std::vector<Value*> vectors;
    for (int64_t v = 0; v < vectors_; ++v) vectors.push_back(load_vector(words(w, k_.i64(u * block_ + v * lanes_))));
    for (int64_t t = 0; t < width_; ++t) {
      Value* x = k_.b.CreateAlignedLoad(word_type(), words(data, k_.i64(t * vector_words_ + u)), llvm::Align(4));
      x = k_.splat(x, static_cast<int>(lanes_));
      for (int64_t v = 0; v < vectors_; ++v) {
        Value*& sum = acc[static_cast<size_t>(t * vectors_ + v)];
        sum = add_product(x, vectors[static_cast<size_t>(v)], sum);
      }
    }
    hold_back(k_, last);
  }
  for (size_t i = 0; i < acc.size(); ++i) k_.b.CreateStore(acc[i], acc_[i]);
}

}  // namespace opfuse::cpu
