// y = max(x, 0) + g(|x|), g(a) = -a / (1 + e^a): one polynomial of degree 5 in a for each of 16 intervals, four to the
// octave of a + 3/2. The exponent and two bits of that sum are the number of the interval. No division, no exponential:
// 17 operations, of which 5 are multiply-adds, instead of 22 with 10, and half of their latency.
//
// Coefficients by Lawson's iteration, highest power first; each is rounded before those below it are fitted. g is met
// within 7e-8, in the first interval (a < 1/4) within 1e-7 of its value; the arithmetic adds up to 3e-7.
#include "codegen/cpu/activation_tables.hpp"

#include <llvm/IR/IntrinsicsX86.h>

#include "base/fail.hpp"
#include "codegen/cpu/table.hpp"

namespace opfuse::cpu {
namespace {

constexpr double kStart = 1.5;
constexpr float kEnd = 22.4999981F;  // kEnd + kStart is below the 17th interval
constexpr int kIntervalBits = 21;    // below them: what is left of the mantissa

// by interval number mod 16, which is 14 for a = 0
constexpr std::array<Table, 6> kCoefficients = {{
    {0.0054111057f, 0.00322676753f, 0.000312793971f, -0.00100655889f, -0.000899901905f, -0.000265967188f,
     -3.03152665e-05f, 1.46193379e-05f, 1.11547761e-05f, 2.86921318e-06f, 5.66713254e-07f, 1.00688354e-07f,
     7.6377038e-09f, 1.90162469e-10f, 0.00128282153f, 0.00408725673f},
    {-0.0275238678f, -0.0159971956f, 0.00563148782f, 0.0184729919f, 0.0166922845f, 0.00574099738f, 0.000570510689f,
     -0.000628384238f, -0.000499364629f, -0.000153958536f, -3.58684993e-05f, -7.36086668e-06f, -6.72048373e-07f,
     -2.05134274e-08f, -0.0211117323f, -0.0243508853f},
    {0.00472236192f, -0.0198270828f, -0.0844444111f, -0.134599015f, -0.123297237f, -0.0472867787f, -0.0017915623f,
     0.0110211764f, 0.00911872741f, 0.00334194605f, 0.00091481139f, 0.000216379281f, 2.37124605e-05f, 8.86519899e-07f,
     2.47262014e-05f, 0.00164109305f},
    {0.248053238f, 0.274407208f, 0.371536434f, 0.469803184f, 0.435100347f, 0.170130163f, -0.0305592883f, -0.0991244316f,
     -0.0852114633f, -0.036757227f, -0.0117664104f, -0.00319943903f, -0.000419556047f, -1.91904164e-05f, 0.249999225f,
     0.24956806f},
    {-0.499562919f, -0.513808906f, -0.587258875f, -0.68385154f, -0.631779015f, -0.167868674f, 0.275987327f,
     0.459723234f, 0.409183234f, 0.205342755f, 0.076429151f, 0.0238167383f, 0.003724423f, 0.000208131474f, -0.5f,
     -0.499939561f},
    {-4.13366106e-05f, 0.0030578f, 0.0254082568f, 0.0635186359f, 0.032782875f, -0.293543816f, -0.687307358f,
     -0.884563684f, -0.811525583f, -0.467440844f, -0.200901717f, -0.0714782327f, -0.0132778101f, -0.000905034889f, 0.0f,
     -3.50176424e-06f},
}};

/// min(|x|, kEnd), kEnd where x is NaN: one instruction.
Real bounded_magnitude(Real x) {
  constexpr int kSmallerMagnitude = 2, kWithoutSign = 2 << 2, kCurrentRounding = 4;
  auto& b = x.k->b;
  return x.with(b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_range_ps_512, {},
                                  {x.v, x.of(kEnd).v, b.getInt32(kSmallerMagnitude | kWithoutSign),
                                   x.k->zero(x.v->getType()), b.getInt16(-1), b.getInt32(kCurrentRounding)}));
}

Real silu(Real x) {
  Real a = bounded_magnitude(x);
  Value* interval = x.k->b.CreateLShr((a + kStart).bits(), x.integer(kIntervalBits));
  Real positive = choose(x.of(0) > x, x.of(0), x);  // NaN stays
  Real last = positive + look_up(kCoefficients.back(), x, interval);
  Real p = look_up(kCoefficients[0], x, interval);
  for (size_t i = 1; i + 1 < kCoefficients.size(); ++i) p = fma(p, a, look_up(kCoefficients[i], x, interval));
  return fma(p, a, last);
}

}  // namespace

bool has_activation_tables(Real x) {
  return x.v->getType()->getScalarType()->isFloatTy() && width_of(x.v) == 16 && x.k->target.vector_bytes == 64;
}

Real emit_by_table(TabledActivation activation, Real x) {
  switch (activation) {
    case TabledActivation::silu:
      return silu(x);
  }
  throw fail(E::internal, "no tables for activation {}", static_cast<int>(activation));
}

}  // namespace opfuse::cpu
