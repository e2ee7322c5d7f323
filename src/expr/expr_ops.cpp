// The table of expression operations and the single definition of what each one means.
//   integers: two's complement in the width of their dtype; x / 0 = 0 and x mod 0 = 0, so nothing traps
//   div truncates towards zero, mod has the divisor's sign, fmod the dividend's
//   shift_right is arithmetic for signed dtypes; shifting by the width or more gives 0 (or -1)
//   min and max give NaN when an operand is NaN
#include <array>
#include <cmath>

#include "base/fail.hpp"
#include "expr/domain.hpp"
#include "expr/real_ops.hpp"
#include "tensor/number.hpp"
#include "tensor/small_float.hpp"

namespace opfuse {

namespace {

struct Row {
  std::string_view name;
  int arity;
};

// In the order of ExprOp.
constexpr std::array kRows = {
    Row{"constant", 0},   Row{"read", 0},        Row{"in_bounds", 0},   Row{"coord", 0},      Row{"result", 0},
    Row{"extent", 0},     Row{"neg", 1},         Row{"abs", 1},         Row{"sign", 1},       Row{"exp", 1},
    Row{"log", 1},        Row{"sqrt", 1},        Row{"rsqrt", 1},       Row{"reciprocal", 1}, Row{"tanh", 1},
    Row{"erf", 1},        Row{"sin", 1},         Row{"cos", 1},         Row{"tan", 1},        Row{"asin", 1},
    Row{"acos", 1},       Row{"atan", 1},        Row{"sinh", 1},        Row{"cosh", 1},       Row{"asinh", 1},
    Row{"acosh", 1},      Row{"atanh", 1},       Row{"floor", 1},       Row{"ceil", 1},       Row{"round_even", 1},
    Row{"is_nan", 1},     Row{"is_inf", 1},      Row{"logical_not", 1}, Row{"bit_not", 1},    Row{"add", 2},
    Row{"sub", 2},        Row{"mul", 2},         Row{"div", 2},         Row{"mod", 2},        Row{"fmod", 2},
    Row{"min", 2},        Row{"max", 2},         Row{"pow", 2},         Row{"lt", 2},         Row{"le", 2},
    Row{"gt", 2},         Row{"ge", 2},          Row{"eq", 2},          Row{"ne", 2},         Row{"logical_and", 2},
    Row{"logical_or", 2}, Row{"logical_xor", 2}, Row{"bit_and", 2},     Row{"bit_or", 2},     Row{"bit_xor", 2},
    Row{"shift_left", 2}, Row{"shift_right", 2}, Row{"select", 3},      Row{"cast", 1},       Row{"bit_cast", 1}};
static_assert(kRows.size() == static_cast<size_t>(ExprOp::bit_cast) + 1);

double as_real(const ScalarValue& v) {
  if (v.dtype == DType::u64) return static_cast<double>(static_cast<uint64_t>(v.integer));
  return v.as_real();
}

ScalarValue real_value(DType dtype, double value, Precision precision) {
  return {dtype, precision == Precision::typed ? round_to(dtype, value) : value, 0};
}
ScalarValue integer_value(DType dtype, int64_t value) { return {dtype, 0, wrap_to(dtype, value)}; }

}  // namespace

double real_unary(ExprOp op, double x) {
  switch (op) {
    case ExprOp::neg:
      return -x;
    case ExprOp::abs:
      return std::fabs(x);
    case ExprOp::sign:
      return sign(x);
    case ExprOp::exp:
      return std::exp(x);
    case ExprOp::log:
      return std::log(x);
    case ExprOp::sqrt:
      return std::sqrt(x);
    case ExprOp::rsqrt:
      return 1.0 / std::sqrt(x);
    case ExprOp::reciprocal:
      return 1.0 / x;
    case ExprOp::tanh:
      return std::tanh(x);
    case ExprOp::erf:
      return std::erf(x);
    case ExprOp::sin:
      return std::sin(x);
    case ExprOp::cos:
      return std::cos(x);
    case ExprOp::tan:
      return std::tan(x);
    case ExprOp::asin:
      return std::asin(x);
    case ExprOp::acos:
      return std::acos(x);
    case ExprOp::atan:
      return std::atan(x);
    case ExprOp::sinh:
      return std::sinh(x);
    case ExprOp::cosh:
      return std::cosh(x);
    case ExprOp::asinh:
      return std::asinh(x);
    case ExprOp::acosh:
      return std::acosh(x);
    case ExprOp::atanh:
      return std::atanh(x);
    case ExprOp::floor:
      return std::floor(x);
    case ExprOp::ceil:
      return std::ceil(x);
    case ExprOp::round_even:
      return std::nearbyint(x);
    default:
      break;
  }
  OPFUSE_CHECK(false, "{} on reals", name_of(op));
  return 0;
}

namespace {

int64_t integer_unary(ExprOp op, DType dtype, int64_t x) {
  switch (op) {
    case ExprOp::neg:
      return static_cast<int64_t>(0 - static_cast<uint64_t>(x));
    case ExprOp::abs:
      return is_signed(dtype) && x < 0 ? integer_unary(ExprOp::neg, dtype, x) : x;
    case ExprOp::sign:
      return is_signed(dtype) ? (x > 0) - (x < 0) : x != 0;
    case ExprOp::floor:
    case ExprOp::ceil:
    case ExprOp::round_even:
      return x;
    case ExprOp::bit_not:
      return ~x;
    default:
      break;
  }
  OPFUSE_CHECK(false, "{} on integers", name_of(op));
  return 0;
}

}  // namespace

double real_binary(ExprOp op, double a, double b) {
  switch (op) {
    case ExprOp::add:
      return a + b;
    case ExprOp::sub:
      return a - b;
    case ExprOp::mul:
      return a * b;
    case ExprOp::div:
      return a / b;
    case ExprOp::mod:
      return mod(a, b);
    case ExprOp::fmod:
      return std::fmod(a, b);
    case ExprOp::min:
      return minimum(a, b);
    case ExprOp::max:
      return maximum(a, b);
    case ExprOp::pow:
      return std::pow(a, b);
    default:
      break;
  }
  OPFUSE_CHECK(false, "{} on reals", name_of(op));
  return 0;
}

namespace {

uint64_t integer_pow(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1, base *= base) {
    if (exponent & 1) result *= base;
  }
  return result;
}

int64_t signed_pow(int64_t a, int64_t b) {
  if (b >= 0) return static_cast<int64_t>(integer_pow(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  if (a == 1) return 1;
  if (a == -1) return b % 2 == 0 ? 1 : -1;
  return 0;
}

template <class T>
int64_t divide(ExprOp op, T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return op == ExprOp::div ? static_cast<int64_t>(0 - static_cast<uint64_t>(a)) : 0;
  }
  if (op == ExprOp::div) return static_cast<int64_t>(a / b);
  T r = a % b;
  if (op == ExprOp::mod && r != 0 && ((r < 0) != (b < 0))) r += b;
  return static_cast<int64_t>(r);
}

int64_t shift(ExprOp op, DType dtype, int64_t a, int64_t by) {
  const uint64_t bits = static_cast<uint64_t>(bit_size(dtype)), distance = static_cast<uint64_t>(by);
  if (op == ExprOp::shift_left)
    return distance >= bits ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << distance);
  if (is_signed(dtype)) return a >> std::min<uint64_t>(distance, 63);
  return distance >= bits ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) >> distance);
}

bool less_int(DType dtype, int64_t a, int64_t b) {
  return is_signed(dtype) ? a < b : static_cast<uint64_t>(a) < static_cast<uint64_t>(b);
}

int64_t integer_binary(ExprOp op, DType dtype, int64_t a, int64_t b) {
  const uint64_t ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
    case ExprOp::add:
      return static_cast<int64_t>(ua + ub);
    case ExprOp::sub:
      return static_cast<int64_t>(ua - ub);
    case ExprOp::mul:
      return static_cast<int64_t>(ua * ub);
    case ExprOp::div:
    case ExprOp::mod:
    case ExprOp::fmod:
      return is_signed(dtype) ? divide(op, a, b) : divide(op, ua, ub);
    case ExprOp::min:
      return less_int(dtype, a, b) ? a : b;
    case ExprOp::max:
      return less_int(dtype, a, b) ? b : a;
    case ExprOp::pow:
      return is_signed(dtype) ? signed_pow(a, b) : static_cast<int64_t>(integer_pow(ua, ub));
    case ExprOp::bit_and:
      return a & b;
    case ExprOp::bit_or:
      return a | b;
    case ExprOp::bit_xor:
      return a ^ b;
    case ExprOp::shift_left:
    case ExprOp::shift_right:
      return shift(op, dtype, a, b);
    default:
      break;
  }
  OPFUSE_CHECK(false, "{} on integers", name_of(op));
  return 0;
}

template <class T>
bool compare(ExprOp op, T a, T b) {
  switch (op) {
    case ExprOp::lt:
      return a < b;
    case ExprOp::le:
      return a <= b;
    case ExprOp::gt:
      return a > b;
    case ExprOp::ge:
      return a >= b;
    case ExprOp::eq:
      return a == b;
    default:
      return a != b;
  }
}

bool compare_values(ExprOp op, const ScalarValue& a, const ScalarValue& b) {
  if (is_float(a.dtype)) return compare(op, a.real, b.real);
  if (is_signed(a.dtype)) return compare(op, a.integer, b.integer);
  return compare(op, static_cast<uint64_t>(a.integer), static_cast<uint64_t>(b.integer));
}

ScalarValue cast_value(DType to, const ScalarValue& v, Precision precision) {
  if (is_float(to)) return real_value(to, as_real(v), precision);
  if (is_float(v.dtype)) return {to, 0, truncate_to(to, v.real)};
  return integer_value(to, v.integer);
}

ScalarValue bit_cast_value(DType to, const ScalarValue& v, Precision precision) {
  const uint64_t bits = is_float(v.dtype) ? bits_of(v.dtype, v.real) : static_cast<uint64_t>(v.integer);
  if (is_float(to)) return real_value(to, value_of_bits(to, bits), precision);
  return integer_value(to, static_cast<int64_t>(bits));
}

}  // namespace

std::string_view name_of(ExprOp op) { return kRows[static_cast<size_t>(op)].name; }
int arity(ExprOp op) { return kRows[static_cast<size_t>(op)].arity; }

std::optional<ExprOp> parse_expr_op(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<ExprOp>(i);
  }
  return std::nullopt;
}

ScalarValue evaluate_op(ExprOp op, DType result, const std::vector<ScalarValue>& args, Precision precision) {
  switch (op) {
    case ExprOp::select:
      return args[0].integer != 0 ? args[1] : args[2];
    case ExprOp::cast:
      return cast_value(result, args[0], precision);
    case ExprOp::bit_cast:
      return bit_cast_value(result, args[0], precision);
    case ExprOp::is_nan:
      return {DType::boolean, 0, is_float(args[0].dtype) && std::isnan(args[0].real)};
    case ExprOp::is_inf:
      return {DType::boolean, 0, is_float(args[0].dtype) && std::isinf(args[0].real)};
    case ExprOp::logical_not:
      return {DType::boolean, 0, args[0].integer == 0};
    case ExprOp::logical_and:
      return {DType::boolean, 0, args[0].integer != 0 && args[1].integer != 0};
    case ExprOp::logical_or:
      return {DType::boolean, 0, args[0].integer != 0 || args[1].integer != 0};
    case ExprOp::logical_xor:
      return {DType::boolean, 0, (args[0].integer != 0) != (args[1].integer != 0)};
    case ExprOp::lt:
    case ExprOp::le:
    case ExprOp::gt:
    case ExprOp::ge:
    case ExprOp::eq:
    case ExprOp::ne:
      return {DType::boolean, 0, compare_values(op, args[0], args[1])};
    default:
      break;
  }
  const bool real = is_float(result);
  if (arity(op) == 1) {
    if (real) return real_value(result, real_unary(op, args[0].real), precision);
    return integer_value(result, integer_unary(op, result, args[0].integer));
  }
  OPFUSE_CHECK(arity(op) == 2, "{} is not an operation", name_of(op));
  if (real) return real_value(result, real_binary(op, args[0].real, args[1].real), precision);
  return integer_value(result, integer_binary(op, result, args[0].integer, args[1].integer));
}

}  // namespace opfuse
