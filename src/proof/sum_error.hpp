// How far a kernel's sum may be from the exact one, whatever the order of its terms.
#pragma once

#include "proof/lanes.hpp"

namespace opfuse {

/// A sum whose terms were added in some order, in f32 (f64 of f64 terms).
struct SumOfTerms {
  double sum = 0, squares = 0;  ///< of the terms
  Reach errors;                 ///< of the terms' own errors
  double terms = 0;             ///< that are not 0
};

/// Roundings of a sum in an unknown order: kSumFactor standard deviations
///     u sqrt(n (S^2 / 3 + |t|^2 / 6) + 2 |t|^2)
/// for n terms t of sum S: partial sums of a random order, rounded independently; the last part is the rounding of
/// each product and of each folded weight.
Reach sum_error(DType dtype, const SumOfTerms& s);
inline constexpr double kSumFactor = 12;
/// The bound that never fails, n u sum|t|; printed only.
double worst_sum_error(DType dtype, const SumOfTerms& s);

/// A sum of `magnitude` = sum|t| that may leave the type on its way: of terms of one sign it is infinite where `typed`
/// asks for the kernel's own number, else infinity lies in its reach. False: other sums stay as they are.
bool overflow_sum(DType dtype, double magnitude, bool typed, double& sum, Reach& error);

/// Exponent of the lowest bit of a finite number other than 0: v is an odd multiple of 2^that.
int lowest_bit(double v);

}  // namespace opfuse
