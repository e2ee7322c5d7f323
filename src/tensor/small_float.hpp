// Floats of eight bits and fewer (OCP FP8, FP4, MX scales), and the bits of numbers of any type.
#pragma once

#include <cstdint>

#include "tensor/dtype.hpp"

namespace opfuse {

/// What a format does where an IEEE float would have infinities and NaN.
enum class Overflow {
  infinite,       ///< f8e5m2: as IEEE
  only_nan,       ///< f8e4m3fn: all ones are NaN, of both signs
  negative_zero,  ///< fnuz: the code of -0 is NaN, the only one
  saturates,      ///< f4e2m1: neither infinities nor NaN
};

struct SmallFormat {
  int mantissa_bits = 0, bias = 0;
  int greatest = 0;  ///< code of the largest finite value
  Overflow overflow = Overflow::infinite;
};

/// Format of a float of a byte or less; f8e8m0, which has exponents only, is none of these. E::unsupported_dtype.
const SmallFormat& small_format(DType dtype);

/// Largest finite value of a float type.
double greatest_of(DType dtype);

/// Code of the nearest value, ties to even, in one rounding; what is too large becomes what the format has for that.
uint8_t to_byte_float(DType dtype, double value);
double from_byte_float(DType dtype, uint8_t code);

/// The bits that hold `value` in a float type, and back.
uint64_t bits_of(DType dtype, double value);
double value_of_bits(DType dtype, uint64_t bits);

}  // namespace opfuse
