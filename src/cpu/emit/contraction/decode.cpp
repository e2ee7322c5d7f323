// A word holds the codes of `unit` rows of one column, a vector of words those of as many columns as it has lanes:
//
//   for blocks of rows with one scale:           scale, zero = vectors of them
//     for words:  for codes of a word:           w = f32(words >> bits * i & mask) - zero
//       one row of data      partial += x * w            sums += scale * partial behind the block
//       several              sums[p] += x[p] * (w * scale)
//
// Codes become floats without a conversion: as the last bits of 2^23, or of up to 4 bits by a table of 16 floats in a
// register, whose lookup takes no more than an index's last four bits. With the table, zero points of a single row of
// data are subtracted once for a block of rows: sum x (code - h) - (zero - h) sum x, where h is the middle code, so
// that both parts are as small as the products.
#include "cpu/emit/contraction/decode.hpp"

#include <llvm/IR/IntrinsicsX86.h>

#include "cpu/contraction/packed_weights.hpp"
#include "cpu/emit/math/half_float.hpp"
#include "cpu/emit/prefetch.hpp"

namespace opfuse::cpu {
namespace {

constexpr double kTwoTo23 = 8388608;
constexpr uint32_t kBitsOfTwoTo23 = 0x4B000000;
constexpr int64_t kUnrolledWords = 8;  ///< of a block of rows; of more, half as many in a loop
constexpr int64_t kBytesAhead = 4096;  ///< of the words' stream

/// Scales of a block of rows, and what is subtracted from its codes, by vector.
struct BlockOfRows {
  std::vector<Value*> scales, zeros;
};

class Decoder {
 public:
  /// `block`: number of a block of columns; `vectors`: of them that are used.
  /// `apart`: where codes come from a table, their zero points are left to the caller.
  Decoder(const ContractionPlan& plan, Value* block, int64_t vectors, bool apart = false)
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

  BlockOfRows block_of_rows(Value* row) const {
    BlockOfRows block;
    for (int64_t v = 0; v < vectors_; ++v) {
      block.scales.push_back(scale(row, v));
      if (coded_.zeros >= 0)
        block.zeros.push_back(k_.b.CreateFAdd(zero_point(row, v), number(by_table_ ? -middle() : kTwoTo23)));
      else
        block.zeros.push_back(by_table_ ? nullptr : number(kTwoTo23 + static_cast<double>(coded_.zero)));
    }
    return block;
  }

  std::vector<Value*> words(Value* word) const {
    std::vector<Value*> all;
    Value* first = k_.mul(word, k_.i64(columns_));
    for (int64_t v = 0; v < vectors_; ++v) {
      Value* at = k_.element(words_, DType::i32, k_.add(first, k_.i64(v * lanes_)));
      prefetch(k_, k_.element(at, DType::i32, k_.i64(kBytesAhead / 4)), Ahead::near);
      all.push_back(k_.b.CreateAlignedLoad(k_.lanes(k_.b.getInt32Ty(), width()), at, llvm::Align(4)));
    }
    return all;
  }

  /// Code `index` of a vector of words, less its zero point.
  Value* centred(Value* words, int64_t index, Value* zero) const {
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

  /// Codes are less the middle one alone; what BlockOfRows has for zero points is still to be subtracted.
  bool apart() const { return apart_; }

 private:
  Kernel& k_;
  const CodedWeights& coded_;
  const int64_t lanes_, columns_, vectors_;
  const bool by_table_, apart_;
  Value *words_ = nullptr, *scales_ = nullptr, *zeros_ = nullptr, *table_ = nullptr;
  DType scale_type_ = DType::f32;

  int width() const { return static_cast<int>(lanes_); }
  llvm::Type* floats() const { return k_.lanes(k_.b.getFloatTy(), width()); }
  Value* number(double x) const { return llvm::ConstantFP::get(floats(), x); }

  double middle() const { return static_cast<double>(int64_t{1} << (coded_.bits - 1)); }

  /// Of codes less the zero point they have in common, or less the middle one.
  Value* table_of_codes() const {
    const int64_t mask = (int64_t{1} << coded_.bits) - 1;
    const double zero = coded_.zeros >= 0 ? middle() : static_cast<double>(coded_.zero);
    std::vector<float> numbers;
    for (int64_t i = 0; i < 16; ++i) numbers.push_back(static_cast<float>(static_cast<double>(i & mask) - zero));
    return llvm::ConstantDataVector::get(k_.context(), numbers);
  }

  Value* at(Value* stream, DType type, Value* row, int64_t vector) const {
    return k_.element(stream, type, k_.add(k_.mul(row, k_.i64(columns_)), k_.i64(vector * lanes_)));
  }

  Value* scale(Value* row, int64_t vector) const {
    Value* from = at(scales_, scale_type_, row, vector);
    llvm::Type* type = k_.lanes(k_.memory_type(scale_type_), width());
    Value* bits = k_.b.CreateAlignedLoad(type, from, llvm::Align(byte_size(scale_type_)));
    return scale_type_ == DType::f32 ? bits : widen_half(k_, bits, scale_type_);
  }

  Value* zero_point(Value* row, int64_t vector) const {
    Value* from = at(zeros_, DType::u8, row, vector);
    Value* bytes = k_.b.CreateAlignedLoad(k_.lanes(k_.b.getInt8Ty(), width()), from, llvm::Align(1));
    return k_.b.CreateSIToFP(k_.b.CreateZExt(bytes, k_.lanes(k_.b.getInt32Ty(), width())), floats());
  }
};

/// `block`(scale's row, first word, rows) for every block of rows, then for what the last one has.
void for_blocks(const ContractionPlan& plan, const std::function<void(Value*, Value*, int64_t)>& block) {
  Kernel& k = plan.k;
  const CodedWeights& coded = *plan.view.coded;
  const int64_t depth = plan.depth(), whole = depth / coded.block, rest = depth - whole * coded.block;
  const int64_t words = coded.block / coded.unit();
  k.loop(k.i64(0), k.i64(whole), 1, [&](Value* row) { block(row, k.mul(row, k.i64(words)), coded.block); });
  if (rest) block(k.i64(whole), k.i64(whole * words), rest);
}

/// `word`(number, codes) for the words of so many rows.
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

class DecodedProducts {
 public:
  DecodedProducts(const ContractionPlan& plan, const Tile& tile, const Env& env)
      : plan_(plan), tile_(tile), env_(env), k_(plan.k), decoder_(plan, tile.block, tile.form.vectors, one_row()) {
    if (decoder_.apart()) data_sum_ = k_.variable(plan.product.sums);
    for (int64_t v = 0; one_row() && v < tile.form.vectors; ++v) partial_.push_back(k_.variable(plan.product.sums));
  }

  void add() {
    for_blocks(plan_, [&](Value* row, Value* first, int64_t rows) {
      BlockOfRows block = decoder_.block_of_rows(row);
      for (Value* sum : partial_) clear(sum);
      if (data_sum_) clear(data_sum_);
      for_words(plan_, first, rows, [&](Value* word, int64_t codes) { multiply(block, word, codes); });
      for (int64_t v = 0; one_row() && v < tile_.form.vectors; ++v) {
        Value* sum = place(0, v);
        Value* part = load(partial_[static_cast<size_t>(v)]);
        if (data_sum_) part = k_.fma(k_.b.CreateFNeg(block.zeros[static_cast<size_t>(v)]), load(data_sum_), part);
        Value* before = k_.b.CreateLoad(plan_.product.sums, sum);
        k_.b.CreateStore(k_.fma(part, block.scales[static_cast<size_t>(v)], before), sum);
      }
    });
  }

 private:
  const ContractionPlan& plan_;
  const Tile& tile_;
  const Env& env_;
  Kernel& k_;
  const Decoder decoder_;
  std::vector<Value*> partial_;  ///< sums of a block of rows before they are scaled
  Value* data_sum_ = nullptr;    ///< of the block's data

  bool one_row() const { return tile_.pixels() == 1; }
  Value* load(Value* sum) const { return k_.b.CreateLoad(plan_.product.sums, sum); }
  void clear(Value* sum) const { k_.b.CreateStore(k_.zero(plan_.product.sums), sum); }
  Value* place(int64_t pixel, int64_t vector) const { return plan_.places[tile_.form.place_of(pixel, vector)]; }

  void multiply(const BlockOfRows& block, Value* word, int64_t codes) const {
    const std::vector<Value*> words = decoder_.words(word);
    Env at = env_;
    const int64_t unit = plan_.view.coded->unit();
    at.axes[static_cast<size_t>(plan_.view.channel)] = {k_.mul(word, k_.i64(unit)), false, unit};
    const Address data = address_of(k_, plan_.data(), plan_.map_of(plan_.view.data), at, nullptr);
    Value* from = k_.add(data.scalar, k_.i64(data.constant));
    for (int64_t code = 0; code < codes; ++code) {
      std::vector<Value*> x;
      for (int64_t p = 0; p < tile_.pixels(); ++p) x.push_back(data_of(at, from, p, code));
      if (data_sum_) k_.b.CreateStore(k_.b.CreateFAdd(load(data_sum_), x[0]), data_sum_);
      for (int64_t v = 0; v < tile_.form.vectors; ++v) {
        const auto i = static_cast<size_t>(v);
        Value* w = decoder_.centred(words[i], code, block.zeros[i]);
        if (!one_row()) w = k_.b.CreateFMul(w, block.scales[i]);
        for (int64_t p = 0; p < tile_.pixels(); ++p) {
          Value* sum = one_row() ? partial_[i] : place(p, v);
          Value* before = k_.b.CreateLoad(plan_.product.sums, sum);
          k_.b.CreateStore(k_.fma(x[static_cast<size_t>(p)], w, before), sum);
        }
      }
    }
  }

  /// In all lanes: row `pixel` at channel `code` of the word that `env` stands at.
  Value* data_of(const Env& env, Value* from, int64_t pixel, int64_t code) const {
    const PixelSteps steps(plan_, tile_);
    Value* step = k_.mul(plan_.data_step(plan_.view.channel), k_.i64(code));
    Value* at = k_.element(plan_.data().base, DType::f32, k_.add(from, steps.offset(k_, tile_, pixel, step)));
    Value* x = k_.b.CreateAlignedLoad(k_.b.getFloatTy(), at, plan_.data_align());
    if (plan_.view.value.op() != ExprOp::read) {
      Env point = env;
      move_to_pixel(plan_, tile_, pixel, point);
      point.axes[static_cast<size_t>(plan_.view.channel)].plus = code;
      x = plan_.s.at(point, {}, {{plan_.view.data, x}}).emit(plan_.view.value, DType::f32);
    }
    return k_.splat(x, static_cast<int>(plan_.lanes));
  }
};

}  // namespace

void add_decoded(const ContractionPlan& plan, const Tile& tile, const Env& env) {
  DecodedProducts(plan, tile, env).add();
}

void decode_block(const ContractionPlan& plan, Value* number) {
  Kernel& k = plan.k;
  k.scratch_bytes = packed_bytes(plan.s.stage, plan.view, plan.block);
  const Decoder decoder(plan, number, plan.vectors);
  const int64_t unit = plan.view.coded->unit();
  for_blocks(plan, [&](Value* row, Value* first, int64_t rows) {
    const BlockOfRows block = decoder.block_of_rows(row);
    for_words(plan, first, rows, [&](Value* word, int64_t codes) {
      const std::vector<Value*> words = decoder.words(word);
      Value* channel = k.mul(word, k.i64(unit));
      for (int64_t code = 0; code < codes; ++code)
        for (int64_t v = 0; v < plan.vectors; ++v) {
          const auto i = static_cast<size_t>(v);
          Value* w = k.b.CreateFMul(decoder.centred(words[i], code, block.zeros[i]), block.scales[i]);
          Value* offset = k.mul(k.add(channel, k.i64(code)), k.i64(plan.block));
          k.b.CreateAlignedStore(w, k.element(k.scratch, DType::f32, k.add(offset, k.i64(v * plan.lanes))),
                                 plan.weight_align());
        }
    });
  });
}

}  // namespace opfuse::cpu
