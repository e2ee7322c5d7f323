// Partial sums of a random order and the rounding of each; what leaves the type on its way.
#include "proof/sum_error.hpp"

#include <cmath>
#include <limits>

#include "proof/error_rules.hpp"

namespace opfuse {

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

Reach sum_error(DType dtype, const SumOfTerms& s) {
  if (!std::isfinite(s.sum)) return std::isfinite(s.errors.most()) ? Reach() : Reach::anywhere();
  const double u = dtype == DType::f64 ? unit_of(DType::f64) : unit_of(DType::f32);
  const double store = rounding_of(computed_in(dtype), s.sum);
  if (s.terms <= 1) return s.errors + Reach::both(store);
  const double variance = s.terms * (s.sum * s.sum / 3 + s.squares / 6) + 2 * s.squares;
  return s.errors + Reach::both(kSumFactor * u * std::sqrt(variance) + store + smallest_normal_of(DType::f32));
}

double worst_sum_error(DType dtype, const SumOfTerms& s) {
  const double u = dtype == DType::f64 ? unit_of(DType::f64) : unit_of(DType::f32);
  return s.errors.most() + u * s.terms * std::sqrt(s.terms * s.squares);
}

int lowest_bit(double v) {
  int exponent = 0;
  const auto mantissa = static_cast<int64_t>(std::ldexp(std::frexp(v, &exponent), 53));
  return exponent - 53 + __builtin_ctzll(static_cast<unsigned long long>(mantissa));
}

bool overflow_sum(DType dtype, double magnitude, bool typed, double& sum, Reach& error) {
  const double most = largest_of(computed_in(dtype));
  if (!std::isfinite(sum) || !std::isfinite(magnitude) || !(magnitude + error.most() > most)) return false;
  const bool one_sign = std::fabs(sum) >= magnitude * (1 - 0x1p-40);
  const bool surely = std::fabs(sum) - error.most() > most * (1 + unit_of(computed_in(dtype)));
  if (!one_sign) {  // infinities of both signs on its way
    error = Reach::anywhere();
  } else if (surely && typed) {
    sum = std::copysign(kInfinity, sum), error = {};
  } else {
    if (surely) error = Reach::both(std::fabs(sum) - most);
    (sum > 0 ? error.above : error.below) = kInfinity;
  }
  return true;
}

}  // namespace opfuse
