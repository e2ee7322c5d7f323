// Data of types that products do not take are widened once per step of a tile, a vector of channels at a time. Products
// then read words from there by broadcasts from memory; widened where each word is spread over the lanes, every one
// would cost operations. Many steps are widened before the first of their products: words that are still on their way
// to memory reach few loads a cycle.
//
//   f16      widened[p, channels] = f32 of data[p, channels]
//   codes    even[p, channels / 2] = i16 of channels 0, 2 ..;  odd[p, ..] = those between: a word of two for pmaddwd
#include "cpu/emit/contraction/widen_data.hpp"

#include <algorithm>
#include <bit>

#include "cpu/contraction/codes.hpp"
#include "cpu/emit/contraction/pairs.hpp"
#include "cpu/emit/contraction/products.hpp"
#include "cpu/emit/fence.hpp"
#include "cpu/emit/math/half_float.hpp"

namespace opfuse::cpu {
namespace {

constexpr uint64_t kEvenByte = 0x00FF;
constexpr int64_t kBytesAhead = 8192;  ///< a quarter of L1 or less, and more stores than a processor has on their way

int64_t pixels_of_tile(const ContractionPlan& plan) { return plan.schedule.tile_w * plan.schedule.tile_h; }

/// Where products take two codes at a time.
bool widens_codes(const ContractionPlan& plan) {
  return plan.types().data_bytes() == 1 && !has_byte_products(plan.k.target) && !plan.schedule.matrix;
}

/// Of the even channels of all pixels: the odd ones lie behind them.
int64_t bytes_of_half(const ContractionPlan& plan) { return pixels_of_tile(plan) * plan.schedule.step; }

/// Of a tile's step, widened.
int64_t bytes_of_step(const ContractionPlan& plan) {
  return pixels_of_tile(plan) * plan.schedule.step * (widens_codes(plan) ? 2 : plan.types().sum_bytes());
}

int64_t taps_of(const ContractionPlan& plan) {
  int64_t taps = 1;
  for (const int axis : plan.view.taps) taps *= plan.tap_count(axis);
  return taps;
}

/// Of neighbours as many at once as a vector holds.
void widen_codes(const ContractionPlan& plan, const Tile& tile, Value* from, int64_t channels, uint64_t pixels,
                 Value* place) {
  Kernel& k = plan.k;
  auto& b = k.b;
  const DType type = plan.types().data;
  const int64_t step = plan.schedule.step, all = tile.pixels(), width = tile.run->width;
  const PixelSteps steps(plan, tile);
  const auto* apart = llvm::dyn_cast<llvm::ConstantInt>(steps.pixel);
  const bool neighbours = channels == step && apart && apart->getSExtValue() == step;
  const int64_t most = neighbours ? std::max<int64_t>(1, k.target.vector_bytes / step) : 1;
  for (int64_t p = 0, count = 1; p < all; p += count) {
    count = 1;
    if (!(pixels >> p & 1)) continue;
    while (count < most && (p + count) % width != 0 && (pixels >> (p + count) & 1)) ++count;
    count = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count)));
    const auto bytes = static_cast<int>(count * channels);
    Value* at = k.element(from, type, steps.offset(k, tile, p, k.i64(0)));
    Value* codes = b.CreateAlignedLoad(k.lanes(b.getInt8Ty(), bytes), at, plan.data_align());
    if (type == DType::i8) codes = b.CreateXor(codes, llvm::ConstantInt::get(codes->getType(), kSignBits & 0xFF));
    codes = b.CreateBitCast(codes, k.lanes(b.getInt16Ty(), bytes / 2));
    Value* even = b.CreateAnd(codes, llvm::ConstantInt::get(codes->getType(), kEvenByte));
    const auto store = [&](Value* words, int64_t first) {
      Value* to = k.element(place, type, k.i64(first + p * step));
      // volatile: else words of a short vector reach their products through general registers, not by a load
      b.CreateAlignedStore(words, to, plan.sum_align(), true);
    };
    store(even, 0);
    store(b.CreateLShr(codes, 8), bytes_of_half(plan));
  }
}

}  // namespace

/// Behind an integer that LLVM cannot know, so that stored vectors are not taken apart in registers.
Value* widened_data(const ContractionPlan& plan) {
  if (!widens_codes(plan) && !plan.types().widens_data()) return nullptr;
  Kernel& k = plan.k;
  const int64_t bytes = plan.schedule.paired
                            ? bytes_of_pairs(plan)
                            : bytes_of_step(plan) * taps_of(plan) * std::max<int64_t>(1, steps_ahead(plan));
  llvm::AllocaInst* place = k.variable(llvm::ArrayType::get(k.b.getInt8Ty(), static_cast<uint64_t>(bytes)));
  place->setAlignment(llvm::Align(static_cast<uint64_t>(k.target.vector_bytes)));
  return k.b.CreateIntToPtr(opaque(k, k.b.CreatePtrToInt(place, k.b.getInt64Ty())), place->getType());
}

/// Not the last channels of a dense row where they fill no word: there may be nothing behind them.
bool widens(const ContractionPlan& plan, int64_t channels) { return plan.widened && channels % plan.product.unit == 0; }

int64_t steps_ahead(const ContractionPlan& plan) {
  const bool widened = widens_codes(plan) || plan.types().widens_data();
  if (!widened || plan.schedule.grouped || plan.depth() < plan.schedule.step) return 0;
  const int64_t most = kBytesAhead / (bytes_of_step(plan) * taps_of(plan));
  return std::min(most, plan.depth() / plan.schedule.step);
}

/// Steps that are widened together lie behind each other, the taps of each too.
Value* TileProducts::place_of_step(const Env& env) const {
  if (phase_ == Phase::whole) return plan_.widened;
  const auto base_of = [&](int axis) { return env.axes[static_cast<size_t>(axis)].base; };
  Value* number = k_.div(k_.sub(base_of(plan_.view.channel), first_), k_.i64(plan_.schedule.step));
  for (const int axis : plan_.view.taps) number = k_.add(k_.mul(number, k_.i64(plan_.tap_count(axis))), base_of(axis));
  return k_.element(plan_.widened, DType::i8, k_.mul(number, k_.i64(bytes_of_step(plan_))));
}

Factor widened_data_of(const ContractionPlan& plan, Value* place, Value* lane, int64_t channel, int64_t pixel) {
  Kernel& k = plan.k;
  const ElementTypes& types = plan.types();
  const int64_t at = pixel * plan.schedule.step + channel;
  const auto word = [&](DType type, int64_t first) {
    Value* from = k.element(place, type, k.add(lane, k.i64(first + at)));
    return k.b.CreateAlignedLoad(plan.product.word, from, plan.sum_align());
  };
  if (!widens_codes(plan)) return plan.product.spread(word(types.sum, 0));
  Factor words;  // as byte_products.cpp takes a word apart
  for (const int64_t first : {int64_t{0}, bytes_of_half(plan)}) {
    Value* all = k.splat(word(types.data, first), static_cast<int>(plan.lanes));
    words.push_back(k.b.CreateBitCast(all, k.lanes(k.b.getInt16Ty(), static_cast<int>(2 * plan.lanes))));
  }
  return words;
}

/// `data`: where the step starts. Its channels are neighbours (operand_fit.cpp).
void TileProducts::widen_data(const Address& data, int64_t channels, uint64_t pixels, Value* place) const {
  const DType type = plan_.types().data;
  Value* from = k_.element(plan_.data().base, type, k_.add(data.scalar, k_.i64(data.constant)));
  if (widens_codes(plan_)) return widen_codes(plan_, tile_, from, channels, pixels, place);
  const PixelSteps steps(plan_, tile_);
  llvm::Type* vector = k_.lanes(k_.memory_type(type), static_cast<int>(channels));
  for (int64_t p = 0; p < tile_.pixels(); ++p) {
    if (!(pixels >> p & 1)) continue;
    Value* at = k_.element(from, type, steps.offset(k_, tile_, p, k_.i64(0)));
    Value* bits = k_.b.CreateAlignedLoad(vector, at, plan_.data_align());
    Value* to = k_.element(place, plan_.types().sum, k_.i64(p * plan_.schedule.step));
    k_.b.CreateAlignedStore(widen_half(k_, bits, type), to, plan_.sum_align());
  }
}

}  // namespace opfuse::cpu
