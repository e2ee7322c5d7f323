// A value is mantissa * 2^(exponent - bias - mantissa_bits). Codes of one sign are ordered like their values, so a
// mantissa that rounds up carries into the exponent by plain addition. f8e8m0 is the exponent of a float: 2^(code -
// 127), 255 is NaN; signs are lost, and zero becomes the smallest value, as ONNX says.
#include "tensor/small_float.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/fail.hpp"
#include "tensor/number.hpp"
#include "tensor/tensor.hpp"
#include "tensor/tf32.hpp"

namespace opfuse {
namespace {

constexpr SmallFormat kE4M3FN{3, 7, 0x7e, Overflow::only_nan};
constexpr SmallFormat kE4M3FNUZ{3, 8, 0x7f, Overflow::negative_zero};
constexpr SmallFormat kE5M2{2, 15, 0x7b, Overflow::infinite};
constexpr SmallFormat kE5M2FNUZ{2, 16, 0x7f, Overflow::negative_zero};
constexpr SmallFormat kE2M1{1, 1, 0x7, Overflow::saturates};

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

int sign_bit(DType dtype) { return 1 << (bit_size(dtype) - 1); }

/// Nearest power of two of a float's exponent; halfway rounds up, among denormal numbers down.
uint8_t to_exponent(double value) {
  if (!std::isfinite(value)) return 0xff;
  const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value)) & 0x7fffffff;
  return static_cast<uint8_t>((bits + 0x3fffff + (bits >= 0x800000)) >> 23);
}

int code_of(const SmallFormat& f, double size) {
  if (size == 0) return 0;
  const int exponent = std::max(std::ilogb(size), 1 - f.bias);
  if (exponent > 128) return f.greatest + 1;
  return ((exponent + f.bias - 1) << f.mantissa_bits) +
         static_cast<int>(std::nearbyint(std::ldexp(size, f.mantissa_bits - exponent)));
}

}  // namespace

const SmallFormat& small_format(DType dtype) {
  switch (dtype) {
    case DType::f8e4m3fn:
      return kE4M3FN;
    case DType::f8e4m3fnuz:
      return kE4M3FNUZ;
    case DType::f8e5m2:
      return kE5M2;
    case DType::f8e5m2fnuz:
      return kE5M2FNUZ;
    case DType::f4e2m1:
      return kE2M1;
    default:
      throw fail(E::unsupported_dtype, "{} is not a float of a byte", name_of(dtype));
  }
}

uint8_t to_byte_float(DType dtype, double value) {
  if (dtype == DType::f8e8m0) return to_exponent(value);
  const SmallFormat& f = small_format(dtype);
  const int sign = std::signbit(value) ? sign_bit(dtype) : 0;
  const bool finite = std::isfinite(value);
  const int code = finite ? code_of(f, std::fabs(value)) : f.greatest + 1;
  switch (f.overflow) {
    case Overflow::saturates:
      return static_cast<uint8_t>(std::isnan(value) ? sign_bit(dtype) : sign | std::min(code, f.greatest));
    case Overflow::negative_zero:
      return static_cast<uint8_t>(code > f.greatest ? 0x80 : code == 0 ? 0 : sign | code);
    case Overflow::only_nan:
      return static_cast<uint8_t>(sign | std::min(code, f.greatest + 1));
    default:
      return static_cast<uint8_t>(sign | (std::isnan(value) ? 0x7e : std::min(code, f.greatest + 1)));
  }
}

double from_byte_float(DType dtype, uint8_t code) {
  if (dtype == DType::f8e8m0) return code == 0xff ? kNan : std::ldexp(1.0, code - 127);
  const SmallFormat& f = small_format(dtype);
  const int sign = sign_bit(dtype), size = code & (sign - 1);
  if (f.overflow == Overflow::negative_zero && code == sign) return kNan;
  if (size > f.greatest)
    return f.overflow == Overflow::infinite && size == f.greatest + 1 ? ((code & sign) ? -HUGE_VAL : HUGE_VAL) : kNan;
  const int exponent = size >> f.mantissa_bits, whole = 1 << f.mantissa_bits, rest = size & (whole - 1);
  const double value = exponent == 0 ? std::ldexp(rest, 1 - f.bias - f.mantissa_bits)
                                     : std::ldexp(whole + rest, exponent - f.bias - f.mantissa_bits);
  return (code & sign) ? -value : value;
}

double greatest_of(DType dtype) {
  if (dtype == kTf32) return 0x1.ffcp127;
  switch (dtype) {
    case DType::f64:
      return std::numeric_limits<double>::max();
    case DType::f16:
      return 65504;
    case DType::bf16:
      return 0x1.fep127;
    case DType::f8e8m0:
      return 0x1p127;
    case DType::f32:
      return static_cast<double>(std::numeric_limits<float>::max());
    default:
      return from_byte_float(dtype, static_cast<uint8_t>(small_format(dtype).greatest));
  }
}

uint64_t bits_of(DType dtype, double value) {
  if (dtype == kTf32) return std::bit_cast<uint32_t>(to_tf32(to_float_odd(value)));
  switch (dtype) {
    case DType::f64:
      return std::bit_cast<uint64_t>(value);
    case DType::f32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case DType::f16:
      return to_half(to_float_odd(value));
    case DType::bf16:
      return to_bfloat16(to_float_odd(value));
    default:
      return to_byte_float(dtype, value);
  }
}

double value_of_bits(DType dtype, uint64_t bits) {
  if (dtype == kTf32) return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  switch (dtype) {
    case DType::f64:
      return std::bit_cast<double>(bits);
    case DType::f32:
      return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case DType::f16:
      return from_half(static_cast<uint16_t>(bits));
    case DType::bf16:
      return from_bfloat16(static_cast<uint16_t>(bits));
    default:
      return from_byte_float(dtype, static_cast<uint8_t>(bits));
  }
}

}  // namespace opfuse
