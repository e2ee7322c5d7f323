// x = m 2^e with m of 24 bits. Of x (2 / pi), whole multiples of 4 are whole turns: bits of 2 / pi that m 2^e lifts
// above them need not be multiplied (Payne and Hanek). The 96 bits from there on, times m, modulo 2^64, are the angle
// in units of 2^-64 turns.
#include "cpu/emit/math/large_angle.hpp"

#include <array>
#include <numbers>

namespace opfuse::cpu {
namespace {

/// 32 zeros, for exponents whose window begins before the point, and the first 224 bits of 2 / pi.
constexpr std::array<uint32_t, 8> kTwoOverPi = {0,          0xA2F9836E, 0x4E441529, 0xFC2757D1,
                                                0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB};
constexpr int64_t kWord = 32, kFirstBit = 1048;  ///< the exponent field of an x whose window begins at the point

Value* low_word(Real x, Value* v) { return x.k->b.CreateAnd(v, x.integer(0xFFFFFFFF)); }

/// Signed integers as doubles, whatever the target converts: two words behind a power of two.
Real to_real(Real x, Value* v) {
  auto& b = x.k->b;
  const auto behind = [&](Value* word, int64_t exponent) { return x.from_bits(b.CreateOr(word, x.integer(exponent))); };
  constexpr double two52 = 4503599627370496.0, two31 = 2147483648.0, two32 = 4294967296.0;
  Value* high = b.CreateLShr(b.CreateXor(v, x.integer(INT64_MIN)), x.integer(kWord));
  Real upper = behind(high, 0x4330000000000000) - (two52 + two31);
  Real lower = behind(low_word(x, v), 0x4330000000000000) - two52;
  return upper * two32 + lower;
}

}  // namespace

ReducedAngle reduce_large(Real x) {
  auto& b = x.k->b;
  Value* bits = x.bits();
  Value* m = b.CreateOr(b.CreateAnd(b.CreateLShr(bits, x.integer(29)), x.integer(0x7FFFFF)), x.integer(0x800000));
  Value* exponent = b.CreateAnd(b.CreateLShr(bits, x.integer(52)), x.integer(0x7FF));
  Value* start = b.CreateAnd(b.CreateSub(exponent, x.integer(kFirstBit - kWord)), x.integer(0xFF));
  Value* word = b.CreateLShr(start, x.integer(5));
  Value* shift = b.CreateAnd(start, x.integer(kWord - 1));
  const auto window = [&](size_t i) {  // the i-th 32 bits from `start` on
    Value* pair = nullptr;
    for (size_t k = 0; k + i + 1 < kTwoOverPi.size() && k < 5; ++k) {
      const uint64_t two = (uint64_t{kTwoOverPi[k + i]} << kWord) | kTwoOverPi[k + i + 1];
      Value* here = x.integer(static_cast<int64_t>(two));
      pair = pair ? b.CreateSelect(b.CreateICmpEQ(word, x.integer(static_cast<int64_t>(k))), here, pair) : here;
    }
    return b.CreateMul(m, b.CreateLShr(b.CreateShl(pair, shift), x.integer(kWord)));
  };
  Value* turns = b.CreateAdd(b.CreateShl(window(0), x.integer(kWord)), window(1));
  turns = b.CreateAdd(turns, b.CreateLShr(window(2), x.integer(kWord)));
  Value* quadrant = b.CreateLShr(b.CreateAdd(turns, x.integer(int64_t{1} << 61)), x.integer(62));
  Value* rest = b.CreateSub(turns, b.CreateShl(quadrant, x.integer(62)));
  constexpr double unit = std::numbers::pi / 2 / 4611686018427387904.0;  // a quarter turn has 2^62 of them
  Real angle = to_real(x, rest) * unit;
  Value* negative = x < x.of(0);
  return {choose(negative, -angle, angle), b.CreateSelect(negative, b.CreateNeg(quadrant), quadrant)};
}

}  // namespace opfuse::cpu
