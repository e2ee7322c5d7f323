// exp: 2^n m (exp_parts.hpp); 2^n in two factors so that denormal results round once.
// log: x = 2^e m, m in [sqrt(1/2), sqrt 2), log m by a polynomial in m - 1 (float, Cephes) or the
//      atanh series (double, fdlibm).
// tanh: odd polynomial below 0.625, 1 - 2 / (exp 2x + 1) above (Cephes).
// erf: two minimax polynomials, the outer one inside 1 - 2^p(|x|) with 2^f itself a minimax polynomial on [-1/2, 1/2];
//      16 lanes: erf_table.cpp.
// Everything else on float is computed in double and rounded once, which leaves half an ULP.
#include "cpu/emit/math/vector_math.hpp"

#include <cmath>
#include <limits>
#include <numbers>

#include "base/fail.hpp"
#include "cpu/emit/math/erf_table.hpp"
#include "cpu/emit/math/exp_parts.hpp"
#include "cpu/emit/math/large_angle.hpp"
#include "cpu/emit/math/rare_lanes.hpp"

namespace opfuse::cpu {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Real widen(Real x) { return x.with(x.k->b.CreateFPExt(x.v, x.k->lanes(x.k->b.getDoubleTy(), width_of(x.v)))); }
Real narrow(Real x) { return x.with(x.k->b.CreateFPTrunc(x.v, x.k->lanes(x.k->b.getFloatTy(), width_of(x.v)))); }

Value* to_integer(Real x) { return x.k->b.CreateFPToSI(x.v, x.integer_type()); }

Real scale_by_power(Real x, Value* n) {
  auto& b = x.k->b;
  Value* half = b.CreateAShr(n, x.integer(1));
  return x * power_of_two(x, half) * power_of_two(x, b.CreateSub(n, half));
}

/// The clamped ends overflow to infinity and round to zero; comparisons leave NaN as it is.
Real exp(Real x) {
  const bool d = x.is_double();
  const ExpParts parts = split_exp(clamp(x, d ? -746.0 : -104.0, d ? 710.0 : 89.0));
  return scale_by_power(parts.m, parts.n);
}

/// 2^x for -100 < x <= 0, relative error 1e-7: a polynomial (Lawson's iteration) on [-1/2, 1/2].
Real exp2_of_negative(Real x) {
  Real sum = x + magic_of(x);
  Real p = horner(x - (sum - magic_of(x)),
                  {1.327647035e-3, 9.675541321e-3, 5.550713279e-2, 2.402211972e-1, 6.931469671e-1, 1.000000072});
  return add_exponent(p, integer_in(sum));
}

/// Splits positive normal or denormal x = 2^e m with m in [sqrt(1/2), sqrt 2); returns e as a real.
Real split_exponent(Real x, Real& m) {
  auto& b = x.k->b;
  const bool d = x.is_double();
  const double smallest = d ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
  const int shift = d ? 52 : 23;
  Value* tiny = x < x.of(smallest);
  Real scaled = choose(tiny, x * std::ldexp(1.0, shift + 2), x);
  Value* bits = scaled.bits();
  // subtracting the pattern of sqrt(1/2) makes the exponent field floor(log2(x / sqrt(1/2)))
  Value* root_half = x.integer(d ? 0x3FE6A09E667F3BCDLL : 0x3F3504F3);
  Value* offset = b.CreateAnd(b.CreateSub(bits, root_half), x.integer(d ? ~((1LL << 52) - 1) : ~((1 << 23) - 1)));
  m = x.from_bits(b.CreateSub(bits, offset));
  Value* e = b.CreateAShr(offset, x.integer(shift));
  Value* adjusted = b.CreateSelect(tiny, b.CreateSub(e, x.integer(shift + 2)), e);
  return x.with(b.CreateSIToFP(adjusted, x.v->getType()));
}

Real log_ends(Real x, Real y) {
  y = choose(equal(x, x.of(kInf)), x, y);
  y = choose(equal(x, x.of(0)), x.of(-kInf), y);
  y = choose(x < x.of(0), x.of(kNan), y);
  return choose(is_nan(x), x, y);
}

Real log_float(Real x) {
  Real m = x;
  Real e = split_exponent(x, m);
  Real f = m - 1.0;
  Real z = f * f;
  Real p = horner(f, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
                      -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
  Real y = f * z * p;
  y = fma(e, x.of(-2.12194440e-4), y);
  y = fma(z, x.of(-0.5), y);
  return log_ends(x, fma(e, x.of(0.693359375), f + y));
}

Real log_double(Real x) {
  Real m = x;
  Real e = split_exponent(x, m);
  Real f = m - 1.0;
  Real s = f / (f + 2.0);
  Real z = s * s;
  Real r =
      z * horner(z, {1.479819860511658591e-1, 1.531383769920937332e-1, 1.818357216161805012e-1, 2.222219843214978396e-1,
                     2.857142874366239149e-1, 3.999999999940941908e-1, 6.666666666666735130e-1});
  Real h = f * f * 0.5;
  Real low = e * 1.90821492927058770002e-10;
  return log_ends(x, e * 6.93147180369123816490e-1 - ((h - (s * (h + r) + low)) - f));
}

Real log(Real x) { return x.is_double() ? log_double(x) : log_float(x); }

Real tanh(Real x) {
  Real a = magnitude(x);
  if (x.is_double()) {  // (1 - t) / (1 + t), t = exp(-2a); a series where that cancels
    Real t = exp(a * -2.0);
    Real z = x * x;
    Real series = fma(x * z, horner(z, {62.0 / 2835, -17.0 / 315, 2.0 / 15, -1.0 / 3}), x);
    return choose(a < x.of(0.03), series, copy_sign((x.of(1) - t) / (t + 1.0), x));
  }
  Real z = x * x;
  Real p = horner(z, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1});
  Real small = fma(p * z, x, x);
  Real large = x.of(1) - x.of(2) / (exp(a * 2.0) + 1.0);
  Real y = choose(a < x.of(0.625), small, copy_sign(large, x));
  return choose(is_nan(x), x, y);
}

Real erf(Real x) {
  if (x.is_double()) return widen(erf(narrow(x)));
  if (has_erf_table(x)) return erf_by_table(x);
  Real t = magnitude(x);
  Real s = x * x;
  Real near = horner(s, {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1});
  Value* far = t > x.of(0.927734375);
  t = choose(t > x.of(4), x.of(4), t);  // from there on the result is 1
  s = t * t;
  constexpr double unit = std::numbers::log2e;
  Real r = fma(x.of(-1.72853470e-5 * unit), t, 3.83197126e-4 * unit);
  Real u = fma(x.of(-3.88396438e-3 * unit), t, 2.42546219e-2 * unit);
  r = horner(t, fma(r, s, u), {-1.06777877e-1 * unit, -6.34846687e-1 * unit, -1.12871751 * unit}) * t;
  return choose(far, copy_sign(x.of(1) - exp2_of_negative(r), x), fma(near, x, x));
}

/// Three-part reduction by pi / 2, and another one of large floats. Doubles of 1e15 and more become 0
/// (docs/accuracy.md).
ReducedAngle reduce(Real x, bool single, bool jumps) {
  const double bound = single ? kLargeAngle : 1e15;
  Real bounded = choose(magnitude(x) < x.of(bound), x, x.of(0));
  Real n = nearest(bounded * (2 / std::numbers::pi));
  Real r = fma(n, x.of(-1.57079632673412561417e+00), bounded);
  r = fma(n, x.of(-6.07710050630396597660e-11), r);
  r = fma(n, x.of(-2.02226624879595063154e-21), r);
  if (!single) return {r, to_integer(n)};
  Value* large = x.k->b.CreateFCmpOGE(magnitude(x).v, x.of(bound).v);
  const std::vector<Value*> angle = correct_lanes(*x.k, large, {r.v, to_integer(n)}, jumps, [&] {
    const ReducedAngle exact = reduce_large(x);
    return std::vector<Value*>{exact.rest.v, exact.quadrant};
  });
  return {x.with(angle[0]), angle[1]};
}

/// The sine of x, `turned` by quarter turns: 1 gives the cosine. In double.
Real sine(Real x, const ReducedAngle& angle, int turned) {
  auto& b = x.k->b;
  Value* q = b.CreateAdd(angle.quadrant, x.integer(turned));
  const Real r = angle.rest;
  Real z = r * r;
  Real s = fma(r * z,
               horner(z, {1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
                          -1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01}),
               r);
  Real c = fma(z * z,
               horner(z, {-1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07,
                          2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02}),
               fma(z, x.of(-0.5), 1.0));
  Value* odd = b.CreateICmpNE(b.CreateAnd(q, x.integer(1)), x.integer(0));
  Value* negative = b.CreateICmpNE(b.CreateAnd(q, x.integer(2)), x.integer(0));
  Real y = choose(odd, c, s);
  y = choose(negative, -y, y);
  return choose(b.CreateFCmpULT(magnitude(x).v, x.of(kInf).v), choose(is_nan(x), x, y), x.of(kNan));
}

Real trigonometric(ExprOp op, Real x, bool single, bool jumps) {
  const ReducedAngle angle = reduce(x, single, jumps);
  if (op == ExprOp::tan) return sine(x, angle, 0) / sine(x, angle, 1);
  return sine(x, angle, op == ExprOp::cos ? 1 : 0);
}

/// atan in double: |x| > 1 through pi/2 - atan(1/x), then halved once more; error below 1e-13.
Real atan(Real x) {
  Real a = magnitude(x);
  Value* inverted = a > x.of(1);
  Real t = choose(inverted, x.of(1) / a, a);
  Real h = t / (root(fma(t, t, 1.0)) + 1.0);
  h = h / (root(fma(h, h, 1.0)) + 1.0);  // tan(atan(t) / 4), at most 0.199
  Real z = h * h;
  Real p = fma(h * z, horner(z, {1.0 / 17, -1.0 / 15, 1.0 / 13, -1.0 / 11, 1.0 / 9, -1.0 / 7, 1.0 / 5, -1.0 / 3}), h);
  Real y = p * 4.0;
  y = choose(inverted, x.of(std::numbers::pi / 2) - y, y);
  return choose(is_nan(x), x, copy_sign(y, x));
}

/// log(1 + x) and exp(x) - 1 in double for results rounded to float.
Real log1p(Real x) {
  Real u = x + 1.0;
  Real corrected = log(u) * (x / (u - 1.0));
  return choose(equal(u, x.of(1)), x, choose(equal(u, x.of(kInf)), u, corrected));
}
Real expm1(Real x) {
  Real series = fma(x * x, horner(x, {1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5}), x);
  return choose(magnitude(x) < x.of(0.01), series, exp(x) - 1.0);
}

/// Rounding of any real; emulated where the target has no instruction for it (SSE2).
Real rounded(Real x, llvm::Intrinsic::ID id) {
  auto& b = x.k->b;
  if (x.k->target.vector_bytes > 16) return x.with(b.CreateUnaryIntrinsic(id, x.v));
  const double ones = x.is_double() ? 4503599627370496.0 : 8388608.0;  // from here on all numbers are whole
  Value* big = b.CreateNot(magnitude(x) < x.of(ones));
  Real a = choose(big, x.of(0), x);
  Real m = (magnitude(a) + ones) - ones;  // to nearest even
  Real n = copy_sign(m, a);
  if (id == llvm::Intrinsic::floor) n = choose(n > a, n - 1.0, n);
  if (id == llvm::Intrinsic::ceil) n = choose(n < a, n + 1.0, n);
  if (id == llvm::Intrinsic::trunc) n = choose(m > magnitude(a), m - 1.0, m);
  return choose(big, x, copy_sign(n, x));
}

Real rare(ExprOp op, Real x, bool single, bool jumps) {  // x is double; `single`: made of a float
  switch (op) {
    case ExprOp::sin:
    case ExprOp::cos:
    case ExprOp::tan:
      return trigonometric(op, x, single, jumps);
    case ExprOp::atan:
      return atan(x);
    case ExprOp::asin:
      return atan(x / root((x.of(1) - x) * (x + 1.0)));
    case ExprOp::acos:
      return x.of(std::numbers::pi / 2) - atan(x / root((x.of(1) - x) * (x + 1.0)));
    case ExprOp::sinh: {
      Real e = expm1(magnitude(x));
      return copy_sign(choose(e > x.of(1e18), e * 0.5, (e + e / (e + 1.0)) * 0.5), x);
    }
    case ExprOp::cosh: {
      Real e = exp(magnitude(x));
      return (e + x.of(1) / e) * 0.5;
    }
    case ExprOp::asinh: {
      Real a = magnitude(x);
      Real far = log(a) + std::numbers::ln2;
      return copy_sign(choose(a > x.of(1e9), far, log1p(a + a * a / (root(fma(a, a, 1.0)) + 1.0))), x);
    }
    case ExprOp::acosh: {
      Real t = x - 1.0;
      Real near = log1p(t + root(t * 2.0 + t * t));
      return choose(x < x.of(1), x.of(kNan), choose(x > x.of(1e9), log(x) + std::numbers::ln2, near));
    }
    case ExprOp::atanh:
      return log1p(x * 2.0 / (x.of(1) - x)) * 0.5;
    default:
      OPFUSE_CHECK(false, "no function {}", name_of(op));
  }
}

}  // namespace

Value* emit_function(Kernel& k, ExprOp op, Value* value, bool jumps) {
  Real x{&k, value};
  switch (op) {
    case ExprOp::exp:
      return exp(x).v;
    case ExprOp::log:
      return log(x).v;
    case ExprOp::tanh:
      return tanh(x).v;
    case ExprOp::erf:
      return erf(x).v;
    case ExprOp::sqrt:
      return root(x).v;
    case ExprOp::rsqrt:
      return (x.of(1) / root(x)).v;
    case ExprOp::reciprocal:
      return (x.of(1) / x).v;
    case ExprOp::floor:
      return rounded(x, llvm::Intrinsic::floor).v;
    case ExprOp::ceil:
      return rounded(x, llvm::Intrinsic::ceil).v;
    case ExprOp::round_even:
      return rounded(x, llvm::Intrinsic::nearbyint).v;
    default:
      return x.is_double() ? rare(op, x, false, jumps).v : narrow(rare(op, widen(x), true, jumps)).v;
  }
}

// -88 and less give n = -127, the exponent of zero.
Value* emit_exp_below_zero(Kernel& k, Value* value) {
  Real x{&k, value};
  const ExpParts parts = split_exp(choose(x < x.of(-88.0), x.of(-88.0), x));
  return (parts.m * power_of_two(x, parts.n)).v;
}

// |x|^y = exp(y log |x|) in double; the sign and the ends as C's pow.
Value* emit_pow(Kernel& k, Value* base, Value* exponent) {
  Real x{&k, base}, y{&k, exponent};
  const bool single = !x.is_double();
  if (single) x = widen(x), y = widen(y);
  auto& b = k.b;
  Real a = magnitude(x);
  Real r = exp(y * log(a));
  Real whole = rounded(y, llvm::Intrinsic::floor);
  Value* integer = equal(whole, y);
  Real half = y * 0.5;
  Value* odd = b.CreateAnd(integer, b.CreateNot(equal(rounded(half, llvm::Intrinsic::floor), half)));
  Value* finite_odd = b.CreateAnd(odd, magnitude(y) < x.of(9007199254740992.0));
  r = choose(equal(a, x.of(1)), x.of(1), r);
  r = choose(b.CreateAnd(b.CreateAnd(x < x.of(0), b.CreateNot(integer)),
                         b.CreateAnd(a < x.of(kInf), magnitude(y) < x.of(kInf))),
             x.of(kNan), r);
  r = choose(finite_odd, copy_sign(r, x), r);
  r = choose(b.CreateOr(is_nan(x), is_nan(y)), x + y, r);
  r = choose(b.CreateOr(equal(y, x.of(0)), equal(x, x.of(1))), x.of(1), r);
  return single ? narrow(r).v : r.v;
}

// x - trunc(x / y) y in double, until nothing of the quotient of two floats (277 bits) is left: 52 bits a step, or,
// where the product would round, 28. Few quotients need a second step. Of doubles, those of 2^104 and more leave 0
// (docs/accuracy.md).
Value* emit_fmod(Kernel& k, Value* dividend, Value* divisor, bool jumps) {
  Real x{&k, dividend}, y{&k, divisor};
  const bool single = !x.is_double(), rounds = single && !k.target.fma;
  if (single) x = widen(x), y = widen(y);
  Real a = magnitude(x), m = magnitude(y);
  const auto step = [&](Real r) {
    Real q = rounded(r / m, llvm::Intrinsic::trunc);
    if (rounds) q = q.from_bits(k.b.CreateAnd(q.bits(), q.integer(~((int64_t{1} << 24) - 1))));
    return fma(-q, m, r);  // below 0 where q was rounded up
  };
  Real r = step(a);
  const auto further = [&] {
    Real rest = r;
    const int steps = rounds ? 10 : single ? 6 : 2;
    for (int i = 1; i < steps; ++i) rest = step(rest);
    return std::vector<Value*>{rest.v};
  };
  r = x.with(correct_lanes(k, k.b.CreateFCmpOGE(magnitude(r).v, m.v), {r.v}, jumps, further)[0]);
  r = choose(r < x.of(0), r + m, r);
  r = choose(r < m, r, x.of(0));
  r = choose(equal(m, x.of(kInf)), a, r);
  Value* bad = k.b.CreateOr(equal(a, x.of(kInf)), equal(m, x.of(0)));
  r = choose(bad, x.of(kNan), copy_sign(r, x));
  r = choose(k.b.CreateOr(is_nan(x), is_nan(y)), x + y, r);
  return single ? narrow(r).v : r.v;
}

}  // namespace opfuse::cpu
