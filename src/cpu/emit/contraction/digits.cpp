// Data of one row become whole numbers of 24 bits, each a sum of three signed bytes, and products of bytes do the rest:
//
//   for chunks of rows:    2^e <= max |x| < 2^(e + 1),  X = round(x 2^(22 - e)) = d0 + 256 d1 + 65536 d2
//     sums_i = -h sum d_i + sum of codes d_i        i = 0, 1, 2: vpdpbusd of unsigned codes and signed digits, exact
//     t = sums_0 + 256 sums_1 + 65536 sums_2 - (zero - h) sum X         h: the middle code, or what zero points are
//     partial += t 2^(e - 22)                                           if they are all the same
//   sums += scale partial                           behind a block of rows with one scale
//
// An element is off by 2^-23 of the greatest of its chunk at most, 2^-25 of it on average; the sums are exact, where
// those of floats round with every product. Codes are taken apart by a shift and a mask per byte; of 4 bits a word has
// two groups, codes 0, 2, 4, 6 and 1, 3, 5, 7, and digits lie in this order.
//
//   scratch    row: f32 [D]     digits: i8 [3][D]     chunks: {2^(e - 22), three starts of sums, sum X} [D / chunk]
//   D is the depth in whole chunks, filled with zeros
#include "cpu/emit/contraction/digits.hpp"

#include <algorithm>

#include "base/integers.hpp"
#include "cpu/contraction/digits.hpp"
#include "cpu/emit/contraction/decoder.hpp"
#include "cpu/emit/multiply_bytes.hpp"

namespace opfuse::cpu {
namespace {

constexpr int64_t kBytes = 3;          ///< digits of a number
constexpr int kWidth = 16;             ///< elements that are written at once
constexpr uint32_t kSigns = 0x808080;  ///< X + this has digits + 128
constexpr uint32_t kCarry = 66048;     ///< of mantissas so close to 2 that the digits of 22 bits would not hold them
constexpr uint32_t kInfinity = 0x7F800000;
constexpr int64_t kSmallest = 23;  ///< biased exponent of the least factor's inverse

enum Field : int64_t { kInverse, kStart, kTotal = kStart + kBytes, kFields = 8 };

class DigitMemory {
 public:
  explicit DigitMemory(const ContractionPlan& plan)
      : k_(plan.k), chunk_(chunk_of_digits(*plan.view.coded)), depth_(padded(plan.depth(), chunk_)) {}

  int64_t chunk() const { return chunk_; }
  int64_t depth() const { return depth_; }
  Value* row(Value* element) const { return k_.element(k_.scratch, DType::f32, element); }
  Value* digits(int64_t digit, Value* element) const {
    return k_.element(k_.scratch, DType::u8, k_.add(element, k_.i64((4 + digit) * depth_)));
  }
  Value* field(Value* chunk, int64_t field) const {
    Value* at = k_.add(k_.mul(chunk, k_.i64(kFields)), k_.i64(field + (4 + kBytes) * depth_ / 4));
    return k_.element(k_.scratch, DType::f32, at);
  }
  Value* fails() const { return field(k_.i64(depth_ / chunk_), 0); }
  int64_t bytes() const { return (4 + kBytes) * depth_ + (depth_ / chunk_ + 1) * kFields * 4; }

 private:
  Kernel& k_;
  int64_t chunk_, depth_;
  static int64_t padded(int64_t depth, int64_t chunk) { return ceil_of(depth, chunk) * chunk; }
};

class DigitWriter {
 public:
  DigitWriter(const ContractionPlan& plan, const Env& env) : plan_(plan), env_(env), k_(plan.k), b_(k_.b), at_(plan) {
    k_.scratch_bytes = std::max(k_.scratch_bytes, at_.bytes());
  }

  void write() {
    copy_row();
    fails_ = k_.variable(b_.getInt1Ty());
    b_.CreateStore(b_.getFalse(), fails_);
    k_.loop(k_.i64(0), k_.i64(at_.depth() / at_.chunk()), 1, [&](Value* chunk) { write_chunk(chunk); });
    b_.CreateAlignedStore(b_.CreateZExt(b_.CreateLoad(b_.getInt1Ty(), fails_), b_.getInt32Ty()), at_.fails(),
                          llvm::Align(4));
  }

 private:
  const ContractionPlan& plan_;
  const Env& env_;
  Kernel& k_;
  llvm::IRBuilder<>& b_;
  const DigitMemory at_;
  Value* fails_ = nullptr;

  llvm::Type* floats() const { return k_.lanes(b_.getFloatTy(), kWidth); }
  llvm::Type* words() const { return k_.lanes(b_.getInt32Ty(), kWidth); }
  Value* word(uint32_t bits) const { return b_.getInt32(bits); }
  Value* words_of(uint32_t bits) const { return llvm::ConstantInt::get(words(), bits); }

  /// Element `channel` of the data; its neighbours follow.
  Value* place_of(Value* channel) const {
    Env at = env_;
    at.axes[static_cast<size_t>(plan_.view.channel)] = {channel, false, 1};
    const Address data = address_of(k_, plan_.data(), plan_.map_of(plan_.view.data), at, nullptr);
    return k_.element(plan_.data().base, DType::f32, k_.add(data.scalar, k_.i64(data.constant)));
  }

  void copy_row() const {
    const int64_t depth = plan_.depth(), whole = depth / kWidth * kWidth;
    const auto copy = [&](llvm::Type* type, Value* channel) {
      b_.CreateAlignedStore(b_.CreateAlignedLoad(type, place_of(channel), llvm::Align(4)), at_.row(channel),
                            llvm::Align(4));
    };
    k_.loop(k_.i64(0), k_.i64(whole), kWidth, [&](Value* channel) { copy(floats(), channel); });
    for (int64_t i = whole; i < depth; ++i) copy(b_.getFloatTy(), k_.i64(i));
    for (int64_t i = depth; i < at_.depth(); ++i)
      b_.CreateAlignedStore(k_.zero(b_.getFloatTy()), at_.row(k_.i64(i)), llvm::Align(4));
  }

  std::vector<Value*> load(Value* first) const {
    std::vector<Value*> x;
    for (int64_t i = 0; i < at_.chunk(); i += kWidth)
      x.push_back(b_.CreateAlignedLoad(floats(), at_.row(k_.add(first, k_.i64(i))), llvm::Align(4)));
    return x;
  }

  /// Bits of the greatest magnitude; those of NaN are above those of infinity.
  Value* greatest(const std::vector<Value*>& x) const {
    Value* most = nullptr;
    for (Value* v : x) {
      Value* bits = b_.CreateAnd(b_.CreateBitCast(v, words()), words_of(~(1u << 31)));
      most = most ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, most, bits) : bits;
    }
    return b_.CreateIntMaxReduce(most);
  }

  void store(Value* x, Value* chunk, int64_t field) const {
    b_.CreateAlignedStore(x, at_.field(chunk, field), llvm::Align(4));
  }

  void write_chunk(Value* chunk) const {
    Value* first = k_.mul(chunk, k_.i64(at_.chunk()));
    const std::vector<Value*> x = load(first);
    Value* most = greatest(x);
    Value* exponent = b_.CreateLShr(b_.CreateAdd(most, word(kCarry)), 23);
    Value* small = b_.CreateICmpULT(exponent, word(kSmallest));
    Value* wrong =
        b_.CreateOr(b_.CreateICmpUGE(most, word(kInfinity)), b_.CreateAnd(small, b_.CreateICmpNE(most, word(0))));
    b_.CreateStore(b_.CreateOr(b_.CreateLoad(b_.getInt1Ty(), fails_), wrong), fails_);
    exponent = b_.CreateSelect(small, word(kSmallest), exponent);
    Value* factor =
        k_.splat(b_.CreateBitCast(b_.CreateShl(b_.CreateSub(word(276), exponent), 23), b_.getFloatTy()), kWidth);
    store(b_.CreateBitCast(b_.CreateShl(b_.CreateSub(exponent, word(22)), 23), b_.getFloatTy()), chunk, kInverse);
    Value* sum = nullptr;
    for (size_t i = 0; i < x.size(); ++i) {
      Value* rounded = b_.CreateUnaryIntrinsic(llvm::Intrinsic::nearbyint, b_.CreateFMul(x[i], factor));
      Value* whole = b_.CreateFPToSI(rounded, words());
      sum = sum ? b_.CreateAdd(sum, whole) : whole;
      write_bytes(whole, k_.add(first, k_.i64(static_cast<int64_t>(i) * kWidth)));
    }
    write_sums(b_.CreateAddReduce(sum), chunk);
  }

  void write_bytes(Value* whole, Value* first) const {
    const int64_t unit = plan_.view.coded->unit(), groups = unit / 4;
    std::vector<int> order;  // of every word's codes: byte by byte of one group after the other
    for (int64_t i = 0; i < kWidth; ++i) {
      const int64_t in_word = i % unit;
      order.push_back(static_cast<int>(i - in_word + in_word % 4 * groups + in_word / 4));
    }
    Value* bytes = b_.CreateXor(b_.CreateAdd(whole, words_of(kSigns)), words_of(kSigns));
    if (groups > 1) bytes = b_.CreateShuffleVector(bytes, order);
    for (int64_t d = 0; d < kBytes; ++d) {
      Value* digit =
          b_.CreateTrunc(b_.CreateLShr(bytes, static_cast<uint64_t>(8 * d)), k_.lanes(b_.getInt8Ty(), kWidth));
      b_.CreateAlignedStore(digit, at_.digits(d, first), llvm::Align(1));
    }
  }

  /// What the sums of digits begin with: -h sum X, cut into pieces that they hold.
  void write_sums(Value* sum, Value* chunk) const {
    store(b_.CreateSIToFP(sum, b_.getFloatTy()), chunk, kTotal);
    Value* start = b_.CreateMul(b_.CreateSExt(sum, b_.getInt64Ty()), k_.i64(-common_zero(*plan_.view.coded)));
    for (int64_t d = 0; d < kBytes; ++d) {
      Value* piece = b_.CreateAShr(start, static_cast<uint64_t>(8 * d));
      if (d + 1 < kBytes) piece = b_.CreateAnd(piece, 255);
      store(b_.CreateTrunc(piece, b_.getInt32Ty()), chunk, kStart + d);
    }
  }
};

class DigitProducts {
 public:
  DigitProducts(const ContractionPlan& plan, const Tile& tile)
      : plan_(plan),
        tile_(tile),
        k_(plan.k),
        b_(k_.b),
        coded_(*plan.view.coded),
        at_(plan),
        decoder_(plan, tile.block, tile.form.vectors) {
    for (int64_t v = 0; v < tile.form.vectors; ++v) {
      partial_.push_back(k_.variable(plan.product.sums));
      for (int64_t d = 0; d < kBytes; ++d) sums_.push_back(k_.variable(words()));
    }
  }

  void add() {
    for_blocks(plan_, [&](Value* row, Value* first, int64_t rows) {
      const BlockOfRows block = decoder_.less_middle(row, static_cast<double>(common_zero(coded_)));
      for (Value* sum : partial_) b_.CreateStore(k_.zero(plan_.product.sums), sum);
      const int64_t unit = coded_.unit(), whole = rows / at_.chunk(), rest = rows % at_.chunk();
      const int64_t words = at_.chunk() / unit;
      const auto chunk_at = [&](Value* i, int64_t count) {
        add_chunk(block, k_.add(first, k_.mul(i, k_.i64(words))), count);
      };
      if (whole == 1) chunk_at(k_.i64(0), words);
      if (whole > 1) k_.loop(k_.i64(0), k_.i64(whole), 1, [&](Value* i) { chunk_at(i, words); });
      if (rest) chunk_at(k_.i64(whole), ceil_of(rest, unit));
      for (int64_t v = 0; v < tile_.form.vectors; ++v) {
        const auto i = static_cast<size_t>(v);
        Value* sum = plan_.places[tile_.form.place_of(0, v)];
        Value* before = b_.CreateLoad(plan_.product.sums, sum);
        Value* part = b_.CreateLoad(plan_.product.sums, partial_[i]);
        b_.CreateStore(k_.fma(part, block.scales[i], before), sum);
      }
    });
  }

 private:
  const ContractionPlan& plan_;
  const Tile& tile_;
  Kernel& k_;
  llvm::IRBuilder<>& b_;
  const CodedWeights& coded_;
  const DigitMemory at_;
  const Decoder decoder_;
  std::vector<Value*> partial_, sums_;  ///< of a block of rows; of a chunk, by vector and digit

  int width() const { return static_cast<int>(plan_.lanes); }
  llvm::Type* words() const { return k_.lanes(b_.getInt32Ty(), width()); }
  llvm::Type* floats() const { return k_.lanes(b_.getFloatTy(), width()); }
  Value* everywhere(Value* from, llvm::Type* type) const {
    return k_.splat(b_.CreateAlignedLoad(type, from, llvm::Align(4)), width());
  }
  Value* sum_of(int64_t vector, int64_t digit) const { return sums_[static_cast<size_t>(vector * kBytes + digit)]; }
  Value* number(double x) const { return llvm::ConstantFP::get(floats(), x); }

  /// Group `g` of the codes in a vector of words: one in every byte.
  Value* codes(Value* words, int64_t g) const {
    if (coded_.bits == 8) return words;
    const uint64_t mask = ((uint64_t{1} << coded_.bits) - 1) * kEveryByte;
    return b_.CreateAnd(g ? b_.CreateLShr(words, static_cast<uint64_t>(g * coded_.bits)) : words, mask);
  }

  void add_chunk(const BlockOfRows& block, Value* first, int64_t count) const {
    const int64_t unit = coded_.unit(), vectors = tile_.form.vectors;
    Value* chunk = k_.div(first, k_.i64(at_.chunk() / unit));
    for (int64_t d = 0; d < kBytes; ++d) {
      Value* start = everywhere(at_.field(chunk, kStart + d), b_.getInt32Ty());
      for (int64_t v = 0; v < vectors; ++v) b_.CreateStore(start, sum_of(v, d));
    }
    for (int64_t w = 0; w < count; ++w) {
      Value* word = k_.add(first, k_.i64(w));
      const std::vector<Value*> all = decoder_.words(word);
      for (int64_t g = 0; g < unit / 4; ++g) {
        std::vector<Value*> bytes;
        for (Value* x : all) bytes.push_back(codes(x, g));
        for (int64_t d = 0; d < kBytes; ++d) {
          Value* x = everywhere(at_.digits(d, k_.add(k_.mul(word, k_.i64(unit)), k_.i64(4 * g))), b_.getInt32Ty());
          for (int64_t v = 0; v < vectors; ++v) {
            Value* sum = sum_of(v, d);
            Value* before = b_.CreateLoad(words(), sum);
            b_.CreateStore(multiply_bytes(k_, before, bytes[static_cast<size_t>(v)], x), sum);
          }
        }
      }
    }
    join(block, chunk);
  }

  void join(const BlockOfRows& block, Value* chunk) const {
    Value* inverse = everywhere(at_.field(chunk, kInverse), b_.getFloatTy());
    Value* total = coded_.zeros >= 0 ? everywhere(at_.field(chunk, kTotal), b_.getFloatTy()) : nullptr;
    for (int64_t v = 0; v < tile_.form.vectors; ++v) {
      const auto i = static_cast<size_t>(v);
      const auto sum = [&](int64_t d) { return b_.CreateSIToFP(b_.CreateLoad(words(), sum_of(v, d)), floats()); };
      Value* t = k_.fma(sum(2), number(65536), k_.fma(sum(1), number(256), sum(0)));
      if (total) t = k_.fma(b_.CreateFNeg(block.zeros[i]), total, t);
      Value* before = b_.CreateLoad(plan_.product.sums, partial_[i]);
      b_.CreateStore(k_.fma(t, inverse, before), partial_[i]);
    }
  }
};

}  // namespace

void write_digits(const ContractionPlan& plan, const Env& env) { DigitWriter(plan, env).write(); }

void add_digits(const ContractionPlan& plan, const Tile& tile) { DigitProducts(plan, tile).add(); }

Value* has_digits(const ContractionPlan& plan) {
  auto& b = plan.k.b;
  Value* fails = b.CreateAlignedLoad(b.getInt32Ty(), DigitMemory(plan).fails(), llvm::Align(4));
  return b.CreateICmpEQ(fails, b.getInt32(0));
}

}  // namespace opfuse::cpu
