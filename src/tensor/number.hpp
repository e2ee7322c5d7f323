// What storing a number in an element type means. Used by Tensor and by scalar expressions.
#pragma once

#include <cstdint>

#include "tensor/dtype.hpp"

namespace opfuse {

/// Nearest value of a float dtype, ties to even, in one rounding (never double -> float -> half).
double round_to(DType dtype, double value);

/// Smallest and largest value of an integer dtype (u64's largest does not fit: INT64_MAX).
int64_t integer_min(DType dtype);
int64_t integer_max(DType dtype);

/// Keeps the low bits, as two's complement arithmetic does. u64 stays as its bits. boolean: != 0.
int64_t wrap_to(DType dtype, int64_t value);

/// Truncates towards zero and saturates; NaN gives 0. boolean: != 0. u64 results are bits.
int64_t truncate_to(DType dtype, double value);

/// A double nearer to a float's true value: rounds to odd, so that a later rounding is the only one.
float to_float_odd(double value);

}  // namespace opfuse
