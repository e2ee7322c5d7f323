// Products of codes, with the zero points of both factors taken off the sums:
//
//   sum (q - zq)(k - zk) = sum q k - zk sum q + zq (n zk - sum k)        the last part is one number for each key
//
// vpdpbusd multiplies u8 by i8, four at once: left codes of i8 are raised by 128, right ones of u8 lowered, and their
// zero points with them. The sum of depth products of bytes is exact in i32. Packed, a lane has four neighbours along
// the summed axis, and behind the words of a panel lie the sums of its lanes.
//
//   scratch [panels of keys][d / 4][nv vectors]          K, and behind all panels [keys] their part of the sum
//           [panels of columns][keys / 4][nc vectors]    V, and behind all panels [columns] their sums
//           [rows][d]                                    queries, bytes
//           [rows][keys]                                 scores, then codes of the weights from the row's begin on
//           [rows]                                       sums of the queries' codes, then of the weights'
#include "base/integers.hpp"
#include "cpu/contraction/codes.hpp"
#include "cpu/emit/attention/attention.hpp"
#include "cpu/emit/multiply_bytes.hpp"

namespace opfuse::cpu {
namespace {

constexpr int64_t kRaised = 128;

bool is_signed(const CodedFactor& factor) { return factor.code.dtype() == DType::i8; }

}  // namespace

llvm::Type* AttentionEmitter::words_type() { return k_.lanes(k_.b.getInt32Ty(), static_cast<int>(lanes_)); }

Value* AttentionEmitter::bytes_at(Value* base, Value* offset) { return k_.element(base, DType::u8, offset); }

/// `raise`: a left factor.
Value* AttentionEmitter::zero_of(StageEmitter& stage, const CodedFactor& factor, bool raise) {
  Value* zero = k_.b.getInt32(0);
  if (factor.zero) zero = stage.at(stage.fresh_env(1)).emit(factor.zero, DType::i32);
  if (raise == is_signed(factor))
    zero = k_.b.CreateAdd(zero, k_.b.getInt32(static_cast<uint32_t>(raise ? kRaised : -kRaised)));
  return zero;
}

Value* AttentionEmitter::scale_of(StageEmitter& stage, const CodedFactor& factor) {
  return stage.at(stage.fresh_env(1)).emit(factor.scale, DType::f32);
}

/// Codes in the lanes of `point`, as a left factor is u8 and a right one i8.
Value* AttentionEmitter::codes(StageEmitter& stage, const CodedFactor& factor, const Env& point, bool raise,
                               const std::vector<Value*>& results) {
  Value* code = k_.splat(stage.at(point, results).emit(factor.code), static_cast<int>(lanes_));
  if (raise != is_signed(factor)) return code;
  return k_.b.CreateXor(code, llvm::ConstantInt::get(code->getType(), kRaised));
}

/// `body` with the first number and the codes of each vector along the depth, 0 behind its end; the sum of all codes.
Value* AttentionEmitter::each_depth(StageEmitter& stage, const CodedFactor& factor, Env point, bool raise,
                                    const std::function<void(int64_t, Value*)>& body) {
  Value* sum = k_.b.getInt32(0);
  point.width = static_cast<int>(lanes_);
  for (int64_t d = 0; d < depth_; d += lanes_) {
    point.mask = d + lanes_ > depth_ ? lanes_below(k_.i64(d), k_.i64(depth_)) : nullptr;
    point.axes[static_cast<size_t>(view_.depth)] = {k_.i64(d), true, lanes_};
    Value* code = codes(stage, factor, point, raise);
    if (point.mask) code = k_.b.CreateSelect(point.mask, code, k_.zero(code->getType()));
    Value* wide = raise ? k_.b.CreateZExt(code, words_type()) : k_.b.CreateSExt(code, words_type());
    sum = k_.b.CreateAdd(sum, k_.b.CreateAddReduce(wide));
    body(d, code);
  }
  return sum;
}

/// Where the numbers of keys (columns) lie: behind the packed words, which fill a quarter of their memory.
Value* AttentionEmitter::behind(Value* packed, int64_t across, int64_t capacity) {
  return floats(packed, k_.i64(across * capacity / kWordBytes));
}

void AttentionEmitter::pack_coded_keys(const Env& env, const KeyBlock& block) {
  Value* zq = zero_of(s_, codes_->query, true);
  Value* all_zk = k_.b.CreateMul(zero_of(s_, codes_->key, false), k_.b.getInt32(static_cast<uint32_t>(depth_)));
  Value* parts = behind(packed_keys_, ceil_of(keys_, nv_ * lanes_) * nv_ * lanes_, depth_capacity_);
  k_.loop(k_.i64(0), block.count, 1, [&](Value* key) {
    Env point = env;
    point.axes[static_cast<size_t>(view_.key_axis)] = {k_.add(block.first, key), false, 1};
    Value* panel = k_.div(key, k_.i64(nv_ * lanes_));
    Value* lane = k_.rem(key, k_.i64(nv_ * lanes_));
    Value* column =
        floats(packed_keys_, k_.add(k_.mul(panel, k_.i64(nv_ * lanes_ * depth_capacity_ / kWordBytes)), lane));
    Value* sum = each_depth(s_, codes_->key, point, false, [&](int64_t d, Value* code) {
      const int64_t words = std::min(lanes_, depth_ - d) / kWordBytes;
      Value* word = k_.b.CreateBitCast(code, k_.lanes(k_.b.getInt32Ty(), static_cast<int>(lanes_ / kWordBytes)));
      for (int64_t w = 0; w < words; ++w)
        store(floats(column, k_.i64((d / kWordBytes + w) * nv_ * lanes_)),
              k_.b.CreateExtractElement(word, static_cast<uint64_t>(w)));
    });
    store(floats(parts, key), k_.b.CreateMul(zq, k_.b.CreateSub(all_zk, sum)));
  });
}

void AttentionEmitter::pack_coded_values(const Env& env, const KeyBlock& block) {
  Value* sums = behind(packed_values_, result_stride_, key_capacity_);
  k_.loop(k_.i64(0), k_.i64(result_stride_), lanes_,
          [&](Value* at) { store(floats(sums, at), k_.zero(words_type())); });
  const auto quads = [&](Value* first, int64_t keys) {
    vectors(k_.i64(columns_), [&](Value* lane, Value* mask) {
      std::vector<Value*> rows;
      Env point = env;
      point.width = static_cast<int>(lanes_);
      point.mask = mask;
      point.axes[static_cast<size_t>(view_.column)] = {lane, true, lanes_};
      for (int64_t r = 0; r < keys; ++r) {
        point.axes[static_cast<size_t>(view_.summed)] = {k_.add(block.first, k_.add(first, k_.i64(r))), false, 1};
        rows.push_back(codes(c_, codes_->value, point, false));
      }
      Value* step = floats(packed_values_, k_.mul(k_.div(first, k_.i64(kWordBytes)), k_.i64(nc_ * lanes_)));
      Value* vector = k_.div(lane, k_.i64(lanes_));
      Value* panel = k_.mul(k_.div(vector, k_.i64(nc_)), k_.i64(nc_ * lanes_ * key_capacity_ / kWordBytes));
      Value* quad = interleaved(rows);
      store(floats(step, k_.add(panel, k_.mul(k_.rem(vector, k_.i64(nc_)), k_.i64(lanes_)))), quad);
      Value* sum = floats(sums, lane);
      Value* ones = llvm::ConstantInt::get(words_type(), kEveryByte);
      store(sum, multiply_bytes(k_, k_.b.CreateAlignedLoad(words_type(), sum, llvm::Align(4)), ones, quad));
    });
  };
  const int64_t whole = keys_ / kWordBytes * kWordBytes;
  k_.loop(k_.i64(0), k_.i64(whole), kWordBytes, [&](Value* first) { quads(first, kWordBytes); });
  if (keys_ > whole) quads(k_.i64(whole), keys_ - whole);
}

/// Byte l of each of four vectors, as word l.
Value* AttentionEmitter::interleaved(const std::vector<Value*>& rows) {
  Value* words = k_.b.CreateZExt(rows[0], words_type());
  for (size_t r = 1; r < rows.size(); ++r)
    words = k_.b.CreateOr(words, k_.b.CreateShl(k_.b.CreateZExt(rows[r], words_type()), 8 * r));
  return words;
}

void AttentionEmitter::pack_coded_queries(const Env& env, const RowTile& tile) {
  for (int64_t r = 0; r < rows_; ++r) {
    Env point = env;
    point.axes[static_cast<size_t>(view_.row)] = row_at(tile, r);
    Value* sum = each_depth(s_, codes_->query, point, true, [&](int64_t d, Value* code) {
      store(bytes_at(queries_, k_.i64(r * depth_capacity_ + d)), code);
    });
    store(floats(row_tops_, k_.i64(r)), sum);
  }
}

/// acc[r][v] += sum over words of left[r][word] * right[word][v]; strides in bytes, vectors.
void AttentionEmitter::multiply_codes(Value* left, int64_t left_stride, Value* right, int64_t right_stride,
                                      int64_t vectors, int64_t words) {
  const auto steps = [&](Value* first, int64_t count) {
    std::vector<Value*> acc;
    for (int64_t i = 0; i < rows_ * vectors; ++i)
      acc.push_back(k_.b.CreateLoad(words_type(), acc_[static_cast<size_t>(i)]));
    for (int64_t u = 0; u < count; ++u) {
      Value* word = k_.add(first, k_.i64(u));
      std::vector<Value*> columns;
      for (int64_t v = 0; v < vectors; ++v) {
        Value* at = floats(right, k_.mul(k_.add(k_.mul(word, k_.i64(right_stride)), k_.i64(v)), k_.i64(lanes_)));
        columns.push_back(k_.b.CreateAlignedLoad(words_type(), at, llvm::Align(4)));
      }
      for (int64_t r = 0; r < rows_; ++r) {
        Value* at = bytes_at(left, k_.add(k_.i64(r * left_stride), k_.mul(word, k_.i64(kWordBytes))));
        Value* x = k_.splat(k_.b.CreateAlignedLoad(k_.b.getInt32Ty(), at, llvm::Align(1)), static_cast<int>(lanes_));
        for (int64_t v = 0; v < vectors; ++v) {
          Value*& sum = acc[static_cast<size_t>(r * vectors + v)];
          sum = multiply_bytes(k_, sum, x, columns[static_cast<size_t>(v)]);
        }
      }
    }
    for (size_t i = 0; i < acc.size(); ++i) k_.b.CreateStore(acc[i], acc_[i]);
  };
  constexpr int64_t kUnrolled = 2;
  const int64_t whole = words / kUnrolled * kUnrolled;
  k_.loop(k_.i64(0), k_.i64(whole), kUnrolled, [&](Value* word) { steps(word, kUnrolled); });
  if (words > whole) steps(k_.i64(whole), words - whole);
}

/// Sums of a panel of scores, as floats, in the accumulators.
void AttentionEmitter::multiply_coded_scores(Value* at, int64_t vectors) {
  Value* zk = zero_of(s_, codes_->key, false);
  Value* parts = behind(packed_keys_, ceil_of(keys_, nv_ * lanes_) * nv_ * lanes_, depth_capacity_);
  const auto acc = [&](int64_t r, int64_t v) { return acc_[static_cast<size_t>(r * vectors + v)]; };
  for (int64_t r = 0; r < rows_; ++r) {
    Value* sum = k_.b.CreateAlignedLoad(k_.b.getInt32Ty(), floats(row_tops_, k_.i64(r)), llvm::Align(4));
    Value* off = k_.splat(k_.b.CreateNeg(k_.b.CreateMul(zk, sum)), static_cast<int>(lanes_));
    for (int64_t v = 0; v < vectors; ++v) {
      Value* part = floats(parts, k_.add(at, k_.i64(v * lanes_)));
      k_.b.CreateStore(k_.b.CreateAdd(k_.b.CreateAlignedLoad(words_type(), part, llvm::Align(4)), off), acc(r, v));
    }
  }
  Value* panel = floats(packed_keys_, k_.mul(at, k_.i64(depth_capacity_ / kWordBytes)));
  multiply_codes(queries_, depth_capacity_, panel, nv_, vectors, depth_ / kWordBytes);
  scale_sums(vectors, scale_of(s_, codes_->query), scale_of(s_, codes_->key));
}

/// One scale after the other: their product may be beyond f32 where the scaled sum is not.
void AttentionEmitter::scale_sums(int64_t vectors, Value* left, Value* right) {
  for (int64_t i = 0; i < rows_ * vectors; ++i) {
    Value* sum = k_.b.CreateSIToFP(k_.b.CreateLoad(words_type(), acc_[static_cast<size_t>(i)]), vector_type());
    for (Value* scale : {left, right}) sum = k_.b.CreateFMul(sum, k_.splat(scale, static_cast<int>(lanes_)));
    k_.b.CreateStore(sum, acc_[static_cast<size_t>(i)]);
  }
}

/// The same of a panel of results.
void AttentionEmitter::multiply_coded_context(Value* at, int64_t vectors) {
  Value *zp = zero_of(w_, codes_->weight, true), *zv = zero_of(c_, codes_->value, false);
  Value* all_zp = k_.b.CreateMul(zp, k_.b.getInt32(static_cast<uint32_t>(keys_)));
  Value* sums = behind(packed_values_, result_stride_, key_capacity_);
  for (int64_t r = 0; r < rows_; ++r) {
    Value* sum = k_.b.CreateAlignedLoad(k_.b.getInt32Ty(), floats(row_tops_, k_.i64(r)), llvm::Align(4));
    Value* off = k_.splat(k_.b.CreateMul(zv, k_.b.CreateSub(all_zp, sum)), static_cast<int>(lanes_));
    for (int64_t v = 0; v < vectors; ++v) {
      Value* column = floats(sums, k_.add(at, k_.i64(v * lanes_)));
      Value* part = k_.b.CreateMul(k_.b.CreateAlignedLoad(words_type(), column, llvm::Align(4)),
                                   k_.splat(zp, static_cast<int>(lanes_)));
      k_.b.CreateStore(k_.b.CreateSub(off, part), acc_[static_cast<size_t>(r * vectors + v)]);
    }
  }
  Value* panel = floats(packed_values_, k_.mul(at, k_.i64(key_capacity_ / kWordBytes)));
  multiply_codes(scores_, 4 * score_stride_, panel, nc_, vectors, ceil_of(keys_, kWordBytes));
  scale_sums(vectors, scale_of(w_, codes_->weight), scale_of(c_, codes_->value));
}

/// Codes lie where the exponentials were, from the row's begin on, which are read before they are overwritten.
void AttentionEmitter::store_weight_codes(Value* r, Value* row, Value* count,
                                          const std::function<Value*(Value*)>& weight) {
  const Env env = w_.fresh_env(static_cast<int>(lanes_));
  auto* total = k_.variable(words_type());
  k_.b.CreateStore(k_.zero(words_type()), total);
  k_.loop(k_.i64(0), count, lanes_, [&](Value* at) {
    Value* code = codes(w_, codes_->weight, env, true, {weight(at)});
    code = k_.b.CreateSelect(lanes_below(at, count), code, k_.zero(code->getType()));
    store(bytes_at(row, at), code);
    k_.b.CreateStore(k_.b.CreateAdd(k_.b.CreateLoad(words_type(), total), k_.b.CreateZExt(code, words_type())), total);
  });
  store(floats(row_tops_, r), k_.b.CreateAddReduce(k_.b.CreateLoad(words_type(), total)));
  store(floats(factors_, r), real(1, 1));
}

}  // namespace opfuse::cpu
