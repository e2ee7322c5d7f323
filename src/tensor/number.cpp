// Rounding, wrapping and saturating, once for the whole project.
#include "tensor/number.hpp"

#include <bit>
#include <cmath>

#include "tensor/small_float.hpp"
#include "tensor/tensor.hpp"

namespace opfuse {

float to_float_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(nearest) == value || std::isinf(value)) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;  // towards zero; infinity -> largest
  return std::bit_cast<float>(bits | 1);
}

double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::f32:
      return static_cast<float>(value);
    case DType::f16:
      return from_half(to_half(to_float_odd(value)));
    case DType::bf16:
      return from_bfloat16(to_bfloat16(to_float_odd(value)));
    default:
      return is_small_float(dtype) ? value_of_bits(dtype, bits_of(dtype, value)) : value;
  }
}

int64_t integer_min(DType dtype) {
  if (!is_signed(dtype)) return 0;
  return INT64_MIN >> (64 - bit_size(dtype));
}

int64_t integer_max(DType dtype) {
  if (dtype == DType::boolean) return 1;
  const int bits = bit_size(dtype) - (is_signed(dtype) ? 1 : 0);
  return bits >= 63 ? INT64_MAX : (int64_t{1} << bits) - 1;
}

int64_t wrap_to(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::boolean:
      return value != 0;
    case DType::i8:
      return static_cast<int8_t>(value);
    case DType::u8:
      return static_cast<uint8_t>(value);
    case DType::i16:
      return static_cast<int16_t>(value);
    case DType::u16:
      return static_cast<uint16_t>(value);
    case DType::i32:
      return static_cast<int32_t>(value);
    case DType::u32:
      return static_cast<uint32_t>(value);
    case DType::i4:
      return ((value & 15) ^ 8) - 8;
    case DType::u4:
      return value & 15;
    case DType::i2:
      return ((value & 3) ^ 2) - 2;
    case DType::u2:
      return value & 3;
    default:
      return value;
  }
}

int64_t truncate_to(DType dtype, double value) {
  if (dtype == DType::boolean) return value != 0;
  if (std::isnan(value)) return 0;
  if (dtype == DType::u64) {
    if (value <= 0) return 0;
    return value >= 0x1p64 ? -1 : static_cast<int64_t>(static_cast<uint64_t>(value));
  }
  const int64_t low = integer_min(dtype), high = integer_max(dtype);
  if (value <= static_cast<double>(low)) return low;
  if (value >= static_cast<double>(high)) return high;
  return static_cast<int64_t>(value);
}

}  // namespace opfuse
