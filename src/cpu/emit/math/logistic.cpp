// d = 1 + e^z with z = n ln2/16 + r, e^z = 2^(n/16) q(r): a table of 2^(k/16), whose exponent n/16 goes to by adding
// bits, and a polynomial of degree 3. a/d = a s (2 - d s) with s = 1/d to 14 bits, which one instruction gives, instead
// of a division. Ten operations are multiplications, the fewest found: those have two units, all others two or four
// more.
#include "cpu/emit/math/logistic.hpp"

#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>

#include <bit>
#include <cmath>

#include "cpu/emit/math/exp_parts.hpp"
#include "cpu/emit/table.hpp"

namespace opfuse::cpu {
namespace {

constexpr double kFar = 88.7228394;  // 2^128: its exponent's bits are those of infinity
constexpr double kNear = -87.33;     // e^kNear > 2^-126

/// 2^(k/16), less k sixteenths of an exponent step, so that n << 19 adds n/16 to the exponent.
Table sixteenths() {
  Table table;
  for (uint32_t k = 0; k < table.size(); ++k)
    table[k] = std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(std::exp2(k / 16.0))) - (k << 19));
  return table;
}

/// 1 + e^(sign x), sign x in [kNear, kFar], sign is 1 or -1: ln2/16 in two parts, q within 2e-9 (Lawson's iteration).
Real one_plus_exp(Real x, double sign) {
  auto& b = x.k->b;
  Real sum = fma(x, x.of(sign * 16 * std::numbers::log2e), magic_of(x));
  Real n = sum - magic_of(x);
  Real r = fma(n, x.of(sign * -0.0433216989), x);
  r = fma(n, x.of(sign * 1.19040888e-10), r);
  Real q = horner(r, {sign * 0.166667178, 0.500016153, sign, 1});
  Value* power = b.CreateAdd(look_up(sixteenths(), x, sum.bits()).bits(), b.CreateShl(sum.bits(), x.integer(19)));
  return fma(x.from_bits(power), q, 1.0);
}

}  // namespace

bool has_logistic(Kernel& k, Value* z) { return width_of(z) == 16 && k.target.has("avx512f"); }

bool is_logistic_numerator(Value* a, Value* z) {
  auto* c = llvm::dyn_cast<llvm::ConstantFP>(a);
  return (c && c->isExactlyValue(1.0)) ||
         llvm::PatternMatch::match(z, llvm::PatternMatch::m_FNeg(llvm::PatternMatch::m_Specific(a)));
}

Value* emit_logistic(Kernel& k, Value* a, Value* z) {
  auto& b = k.b;
  Value* negated = nullptr;
  const double sign =
      llvm::PatternMatch::match(z, llvm::PatternMatch::m_FNeg(llvm::PatternMatch::m_Value(negated))) ? -1 : 1;
  Real x{&k, sign < 0 ? negated : z};
  Real d = one_plus_exp(sign < 0 ? clamp(x, -kFar, -kNear) : clamp(x, kNear, kFar), sign);
  Real s = d.with(
      b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_rcp14_ps_512, {}, {d.v, k.zero(d.v->getType()), b.getInt16(-1)}));
  Real e = fma(-d, s, 1.0);
  e = choose(e < e.of(1), e, e.of(1));  // infinity * 0 is NaN, which becomes 1, and the result 0
  auto* c = llvm::dyn_cast<llvm::ConstantFP>(a);
  Real y = c && c->isExactlyValue(1.0) ? s : s * x.with(k.splat(a, 16));
  return fma(y, e, y).v;
}

}  // namespace opfuse::cpu
