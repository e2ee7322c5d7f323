// e^x = 2^n m: what every exponential is put together from, and the rounding trick below it.
#pragma once

#include <numbers>

#include "cpu/emit/math/math_builder.hpp"

namespace opfuse::cpu {

/// Adding it rounds |x| < 2^22 (float) or 2^51 (double) to the nearest integer, which the sum's lowest bits hold.
inline double magic_of(Real x) { return x.is_double() ? 6755399441055744.0 : 12582912.0; }

inline Real nearest(Real x) { return (x + magic_of(x)) - magic_of(x); }

/// The integer in the lowest bits of `sum`, to which the magic number was added. Any bits when the sum is NaN: a
/// conversion would be undefined there.
inline Value* integer_in(Real sum) { return sum.k->b.CreateSub(sum.bits(), sum.of(magic_of(sum)).bits()); }

inline int mantissa_bits(Real x) { return x.is_double() ? 52 : 23; }

/// 2^n for n within the normal exponents; 0 one below them.
inline Real power_of_two(Real like, Value* n) {
  auto& b = like.k->b;
  return like.from_bits(
      b.CreateShl(b.CreateAdd(n, like.integer(like.is_double() ? 1023 : 127)), like.integer(mantissa_bits(like))));
}

/// m 2^n where that is a normal number.
inline Real add_exponent(Real m, Value* n) {
  auto& b = m.k->b;
  return m.from_bits(b.CreateAdd(m.bits(), b.CreateShl(n, m.integer(mantissa_bits(m)))));
}

struct ExpParts {
  Real m;    ///< in about [sqrt(1/2), sqrt 2]
  Value* n;  ///< any bits when x is NaN; m is NaN then
};

/// x = n ln2 + r with ln2 in two parts, m = 1 + r + r^2 P(r) (float: Cephes). |x| < 2^22 ln2 (float).
inline ExpParts split_exp(Real x) {
  const bool d = x.is_double();
  Real sum = fma(x, x.of(std::numbers::log2e), magic_of(x));
  Real n = sum - magic_of(x);
  Real r = fma(n, x.of(d ? -6.93145751953125e-1 : -0.693359375), x);
  r = fma(n, x.of(d ? -1.42860682030941723212e-6 : 2.12194440e-4), r);
  const Real p = d ? horner(r, {1.6059043836821613e-10, 2.08767569878681e-9, 2.505210838544172e-8, 2.755731922398589e-7,
                                2.7557319223985893e-6, 2.48015873015873e-5, 1.984126984126984e-4, 1.3888888888888889e-3,
                                8.333333333333333e-3, 4.1666666666666664e-2, 1.6666666666666666e-1, 0.5})
                   : horner(r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
                                5.0000001201e-1});
  // float: one multiplication less for half an ULP more
  return {d ? fma(p * r, r, r) + 1.0 : horner(r, p, {1, 1}), integer_in(sum)};
}

}  // namespace opfuse::cpu
