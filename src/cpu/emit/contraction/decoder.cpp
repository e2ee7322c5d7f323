#include "cpu/emit/contraction/decoder.hpp"

#include <llvm/IR/IntrinsicsX86.h>

#include "cpu/emit/math/half_float.hpp"
#include "cpu/emit/prefetch.hpp"

namespace opfuse::cpu {
namespace {

constexpr double kTwoTo23 = 8388608;
constexpr uint32_t kBitsOfTwoTo23 = 0x4B000000;
constexpr int64_t kUnrolledWords = 8;  ///< of a block of rows; of more, half as many in a loop
constexpr int64_t kWordsAhead = 512;   ///< of their stream, for each bit of a code: the same number of rows

}  // namespace

Decoder::Decoder(const ContractionPlan& plan, Value* block, int64_t vectors, bool apart)
    : k_(plan.k),
      coded_(*plan.view.coded),
      lanes_(plan.lanes),
      columns_(plan.block),
      vectors_(vectors),
      by_table_(coded_.bits <= 4 && k_.target.vector_bytes == 64),
      apart_(apart && by_table_ && coded_.zeros >= 0) {
  const auto stream = [&](int read) {
    const Operand& operand = plan.s.reads[static_cast<size_t>(read)];
    return k_.element(operand.base, operand.dtype, k_.mul(block, k_.dim(operand.strides[0])));
  };
  words_ = stream(coded_.words);
  scales_ = stream(coded_.scales);
  scale_type_ = plan.s.reads[static_cast<size_t>(coded_.scales)].dtype;
  if (coded_.zeros >= 0) zeros_ = stream(coded_.zeros);
  if (by_table_) table_ = table_of_codes();
}

BlockOfRows Decoder::block_of_rows(Value* row) const {
  if (coded_.zeros >= 0) return less_middle(row, by_table_ ? static_cast<double>(middle_code(coded_.bits)) : -kTwoTo23);
  BlockOfRows block = less_middle(row, 0);
  Value* zero = by_table_ ? nullptr : number(kTwoTo23 + static_cast<double>(coded_.zero));
  block.zeros.assign(static_cast<size_t>(vectors_), zero);
  return block;
}

BlockOfRows Decoder::less_middle(Value* row, double middle) const {
  BlockOfRows block;
  for (int64_t v = 0; v < vectors_; ++v) {
    block.scales.push_back(scale(row, v));
    if (coded_.zeros >= 0) block.zeros.push_back(k_.b.CreateFAdd(zero_point(row, v), number(-middle)));
  }
  return block;
}

std::vector<Value*> Decoder::words(Value* word) const {
  std::vector<Value*> all;
  Value* first = k_.mul(word, k_.i64(columns_));
  for (int64_t v = 0; v < vectors_; ++v) {
    Value* at = k_.element(words_, DType::i32, k_.add(first, k_.i64(v * lanes_)));
    prefetch(k_, k_.element(at, DType::i32, k_.i64(kWordsAhead * coded_.bits)), Ahead::near);
    all.push_back(k_.b.CreateAlignedLoad(k_.lanes(k_.b.getInt32Ty(), width()), at, llvm::Align(4)));
  }
  return all;
}

Value* Decoder::centred(Value* words, int64_t index, Value* zero) const {
  auto& b = k_.b;
  Value* x = index ? b.CreateLShr(words, static_cast<uint64_t>(index * coded_.bits)) : words;
  if (by_table_) {
    Value* code = b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {}, {table_, x});
    return zero && !apart_ ? b.CreateFSub(code, zero) : code;
  }
  const bool last = index + 1 == coded_.unit();  // nothing is left of the others
  if (!last) x = b.CreateAnd(x, (uint64_t{1} << coded_.bits) - 1);
  return b.CreateFSub(b.CreateBitCast(b.CreateOr(x, kBitsOfTwoTo23), floats()), zero);
}

/// Of codes less the zero point they have in common, or less the middle one.
Value* Decoder::table_of_codes() const {
  const int64_t mask = (int64_t{1} << coded_.bits) - 1;
  const int64_t zero = coded_.zeros >= 0 ? middle_code(coded_.bits) : coded_.zero;
  std::vector<float> numbers;
  for (int64_t i = 0; i < 16; ++i) numbers.push_back(static_cast<float>((i & mask) - zero));
  return llvm::ConstantDataVector::get(k_.context(), numbers);
}

Value* Decoder::at(Value* stream, DType type, Value* row, int64_t vector) const {
  return k_.element(stream, type, k_.add(k_.mul(row, k_.i64(columns_)), k_.i64(vector * lanes_)));
}

Value* Decoder::scale(Value* row, int64_t vector) const {
  Value* from = at(scales_, scale_type_, row, vector);
  llvm::Type* type = k_.lanes(k_.memory_type(scale_type_), width());
  Value* bits = k_.b.CreateAlignedLoad(type, from, llvm::Align(byte_size(scale_type_)));
  return scale_type_ == DType::f32 ? bits : widen_half(k_, bits, scale_type_);
}

Value* Decoder::zero_point(Value* row, int64_t vector) const {
  Value* from = at(zeros_, DType::u8, row, vector);
  Value* bytes = k_.b.CreateAlignedLoad(k_.lanes(k_.b.getInt8Ty(), width()), from, llvm::Align(1));
  return k_.b.CreateSIToFP(k_.b.CreateZExt(bytes, k_.lanes(k_.b.getInt32Ty(), width())), floats());
}

void for_blocks(const ContractionPlan& plan, const std::function<void(Value*, Value*, int64_t)>& block) {
  Kernel& k = plan.k;
  const CodedWeights& coded = *plan.view.coded;
  const int64_t depth = plan.depth(), whole = depth / coded.block, rest = depth - whole * coded.block;
  const int64_t words = coded.block / coded.unit();
  k.loop(k.i64(0), k.i64(whole), 1, [&](Value* row) { block(row, k.mul(row, k.i64(words)), coded.block); });
  if (rest) block(k.i64(whole), k.i64(whole * words), rest);
}

void for_words(const ContractionPlan& plan, Value* first, int64_t rows,
               const std::function<void(Value*, int64_t)>& word) {
  Kernel& k = plan.k;
  const int64_t unit = plan.view.coded->unit(), words = rows / unit;
  const int64_t step = words <= kUnrolledWords ? words : kUnrolledWords / 2;
  const auto unrolled = [&](Value* from, int64_t count) {
    for (int64_t i = 0; i < count; ++i) word(k.add(from, k.i64(i)), unit);
  };
  const int64_t looped = step ? words / step * step : 0;
  if (looped == step)
    unrolled(first, looped);
  else
    k.loop(k.i64(0), k.i64(looped), step, [&](Value* i) { unrolled(k.add(first, i), step); });
  unrolled(k.add(first, k.i64(looped)), words - looped);
  if (rows % unit) word(k.add(first, k.i64(words)), rows % unit);
}

}  // namespace opfuse::cpu
