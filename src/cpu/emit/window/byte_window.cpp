// Depthwise sums of codes:
//
//   weights: a vector for each row of taps, shift and word, made once for all rows
//   for rows, tiles of pixels:
//     for rows of taps: words of the tile's pixels, each multiplied for all outputs that begin in it
//     epilogue, store
//
// i8 codes are multiplied as code + 128; the sum of 128 w is taken off where sums begin. Padding that is 0 then adds
// nothing: rows of taps outside the image are left out. Other padding takes part.
#include "cpu/emit/window/byte_window.hpp"

#include "cpu/emit/sum_start.hpp"

namespace opfuse::cpu {
namespace {

constexpr unsigned kAllOfWord = (1U << kPixelsOfWord) - 1;
constexpr int kQuarterBytes = 16;  // byte shuffles stay within them

int64_t rounded_up(int64_t x, int64_t by) { return (x + by - 1) / by; }

}  // namespace

ByteWindowEmitter::ByteWindowEmitter(Kernel& k, StageEmitter& stage, const WindowView& view, const ByteWindow& window,
                                     int64_t width, int bias)
    : k_(k),
      s_(stage),
      view_(view),
      w_(window),
      lanes_(lanes_of(k.target)),
      bias_(bias),
      product_(byte_products(k, ElementTypes{window.data, DType::i8, DType::i32, DType::u8})) {
  const auto code = static_cast<uint8_t>(view.padding);
  constexpr uint32_t kEveryByte = 0x01010101;
  padding_ = llvm::ConstantInt::get(k.lanes(k.b.getInt32Ty(), lanes_), kEveryByte * code);
  fills_ = view.guarded && code != (window.data == DType::i8 ? 0x80 : 0);
  runs_ = cut(width);
  for (int64_t i = 0; i < width; ++i) sums_.push_back(k.variable(product_.sums));
}

/// Words that the outputs from `at` on read.
ByteWindowEmitter::Run ByteWindowEmitter::run_of(int64_t at, int64_t width) const {
  Run run{at, at + width, width, {}};
  const int64_t first = at * w_.pixel.stride + w_.pixel.offset;
  for (int64_t output = 0; output < width; ++output) {
    const int64_t shift = w_.shift(output), from = output * w_.pixel.stride - shift;
    for (int64_t word = 0; word < w_.words(shift); ++word) {
      unsigned inside = 0;
      for (int64_t p = 0; p < kPixelsOfWord; ++p) {
        const int64_t x = first + from + word * kPixelsOfWord + p;
        inside |= static_cast<unsigned>(x >= 0 && x < w_.pixel.extent.value()) << p;
      }
      run.words[from + word * kPixelsOfWord] = inside;
    }
  }
  return run;
}

std::vector<ByteWindowEmitter::Run> ByteWindowEmitter::cut(int64_t width) const {
  const int64_t pixels = axis_extent(s_.stage, view_.pixel).value();
  std::vector<Run> runs;
  for (int64_t at = 0; at < pixels; at += width) {
    Run run = run_of(at, std::min(width, pixels - at));
    if (!runs.empty() && runs.back().width == run.width && runs.back().words == run.words)
      runs.back().end = run.end;
    else
      runs.push_back(std::move(run));
  }
  return runs;
}

/// [pixel][channel] -> [channel][pixel]: words of four channels to their quarter, then bytes within it.
Value* ByteWindowEmitter::in_order_of_channels(Value* words) const {
  auto& b = k_.b;
  const int quarters = lanes_ / 4, bytes = 4 * lanes_;
  std::vector<int> order, within;
  for (int i = 0; i < lanes_; ++i) order.push_back(i % 4 * quarters + i / 4);
  for (int i = 0; i < bytes; ++i) {
    const int in = i % kQuarterBytes;
    within.push_back(i - in + in % 4 * 4 + in / 4);
  }
  Value* gathered = b.CreateShuffleVector(words, order);
  Value* turned = b.CreateShuffleVector(b.CreateBitCast(gathered, k_.lanes(b.getInt8Ty(), bytes)), within);
  return b.CreateBitCast(turned, words->getType());
}

/// Four neighbours along the row's taps, from number `tap` on; those that are not `inside` are `otherwise`.
Value* ByteWindowEmitter::load_words(const Operand& operand, int read, const Env& env, int64_t row, int64_t tap,
                                     unsigned inside, Value* otherwise) const {
  Env at = env;
  if (w_.has_rows()) at.axes[static_cast<size_t>(w_.row.tap)] = {k_.i64(row), false, 1};
  at.axes[static_cast<size_t>(w_.pixel.tap)] = {k_.i64(0), false, 0, tap};
  const Address a = address_of(k_, operand, s_.stage.reads[static_cast<size_t>(read)].map, at, nullptr);
  Value* from = k_.element(operand.base, operand.dtype, k_.add(a.scalar, k_.i64(a.constant)));
  llvm::Type* words = k_.lanes(k_.b.getInt32Ty(), lanes_);
  if (inside == kAllOfWord) return k_.b.CreateAlignedLoad(words, from, llvm::Align(1));
  std::vector<llvm::Constant*> bits;
  for (int i = 0; i < lanes_; ++i) bits.push_back(k_.b.getInt1((inside >> (i / (lanes_ / 4)) & 1U) != 0));
  return k_.b.CreateMaskedLoad(words, from, llvm::Align(1), llvm::ConstantVector::get(bits), otherwise);
}

void ByteWindowEmitter::load_weights(const Env& env) {
  const Operand& weights = s_.reads[static_cast<size_t>(w_.weights)];
  Value* none = k_.zero(k_.lanes(k_.b.getInt32Ty(), lanes_));
  weights_.clear();
  start_ = k_.zero(product_.sums);
  const Factor zero = product_.spread(none);
  for (int64_t row = 0; row < w_.row_taps; ++row)
    for (int64_t output = 0; output < w_.grid; ++output) {
      const int64_t shift = w_.shift(output);
      for (int64_t word = 0; word < w_.words(shift); ++word) {
        if (weights_.contains({row, shift, word})) continue;
        const int64_t first = word * kPixelsOfWord - shift;
        unsigned inside = 0;
        for (int64_t p = 0; p < kPixelsOfWord; ++p)
          inside |= static_cast<unsigned>(first + p >= 0 && first + p < w_.taps) << p;
        Value* words = load_words(weights, w_.weights, env, row, first, inside, none);
        const Factor factor = product_.unpack(in_order_of_channels(words));
        weights_[{row, shift, word}] = factor;
        if (w_.data == DType::i8 && shift == 0) start_ = product_.add(start_, zero, factor);
      }
    }
  start_ = k_.b.CreateNeg(start_);
  if (bias_ >= 0) start_ = k_.b.CreateAdd(start_, load_bias(s_, bias_, env));
}

/// i1: this row of taps lies inside the image.
Value* ByteWindowEmitter::row_inside(const Env& env, int64_t row) const {
  const SlidingDim& d = w_.row;
  Value* y =
      k_.add(k_.mul(env.axes[static_cast<size_t>(d.axis)].base, k_.i64(d.stride)), k_.i64(row * d.dilation + d.offset));
  return k_.b.CreateICmpULT(y, k_.dim(d.extent));
}

void ByteWindowEmitter::emit(const Env& env, Value* r0, Value* r1) {
  load_weights(env);
  if (!w_.has_rows()) return emit_row(env, true);
  const SlidingDim& d = w_.row;
  const int64_t rows = axis_extent(s_.stage, d.axis).value(), last = (w_.row_taps - 1) * d.dilation + d.offset;
  const int64_t begin = std::min(rows, rounded_up(std::max<int64_t>(0, -d.offset), d.stride));
  const int64_t room = d.extent.value() - last;  // rows whose last tap is inside: y stride < room
  const int64_t end = std::clamp(room > 0 ? rounded_up(room, d.stride) : 0, begin, rows);
  k_.loop(r0, r1, 1, [&](Value* row) {
    Env at = env;
    at.axes[static_cast<size_t>(d.axis)] = {row, false, 1};
    if (begin == 0 && end == rows) return emit_row(at, true);
    Value* whole = k_.b.CreateICmpULT(k_.sub(row, k_.i64(begin)), k_.i64(end - begin));
    k_.branch(
        whole, [&] { emit_row(at, true); }, [&] { emit_row(at, false); });
  });
}

void ByteWindowEmitter::emit_row(const Env& env, bool whole) {
  for (const Run& run : runs_)
    k_.loop(k_.i64(run.begin), k_.i64(run.end), run.width, [&](Value* q) {
      Env at = env;
      at.axes[static_cast<size_t>(view_.pixel)] = {q, false, 1};
      emit_tile(at, run, whole);
    });
}

/// `whole`: no row of taps is outside.
void ByteWindowEmitter::emit_tile(const Env& env, const Run& run, bool whole) {
  for (int64_t i = 0; i < run.width; ++i) k_.b.CreateStore(start_, sums_[static_cast<size_t>(i)]);
  for (int64_t row = 0; row < w_.row_taps; ++row) {
    const auto inside = [&] { add_row(env, run, row, false); };
    const auto outside = [&] { add_row(env, run, row, true); };
    if (whole)
      inside();
    else if (fills_)
      k_.branch(row_inside(env, row), inside, outside);
    else
      k_.branch(row_inside(env, row), inside);
  }
  std::vector<StageEmitter::Point> points;
  for (int64_t i = 0; i < run.width; ++i) {
    Env at = env;
    at.axes[static_cast<size_t>(view_.pixel)].plus = i;
    points.push_back({at, {k_.b.CreateLoad(product_.sums, sums_[static_cast<size_t>(i)])}});
  }
  s_.store_outputs(points);
}

void ByteWindowEmitter::add_row(const Env& env, const Run& run, int64_t row, bool outside) {
  for (const auto& [at, inside] : run.words) {
    if (inside == 0 && !fills_) continue;
    Factor x;
    if (outside || inside == 0)
      x = product_.spread(padding_);
    else
      x = product_.spread(in_order_of_channels(
          load_words(s_.reads[static_cast<size_t>(view_.data)], view_.data, env, row, at, inside, padding_)));
    for (int64_t output = 0; output < run.width; ++output) {
      const int64_t shift = w_.shift(output), distance = at - (output * w_.pixel.stride - shift);
      if (distance < 0 || distance % kPixelsOfWord != 0 || distance / kPixelsOfWord >= w_.words(shift)) continue;
      llvm::AllocaInst* place = sums_[static_cast<size_t>(output)];
      Value* before = k_.b.CreateLoad(product_.sums, place);
      k_.b.CreateStore(product_.add(before, x, weights_.at({row, shift, distance / kPixelsOfWord})), place);
    }
  }
}

}  // namespace opfuse::cpu
