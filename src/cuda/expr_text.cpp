// One case per ExprOp; evaluate_op (expr/) is the definition these follow. f16 and bf16 are computed in float and
// rounded when stored or cast. Kernels are compiled without contraction: a fused multiply-add is written where meant.
#include "cuda/expr_text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/fail.hpp"
#include "cuda/skeletons.hpp"
#include "expr/real_ops.hpp"
#include "tensor/number.hpp"
#include "tensor/small_float.hpp"
#include "tensor/tf32.hpp"

namespace opfuse::cuda {
namespace {

constexpr size_t kInlineLength = 48;

bool is_number(const Expr& e) { return e.is_constant() && !(is_float(e.dtype()) && std::isnan(e.value())); }
bool small_float(DType d) { return d == DType::f32 || is_small_float(d); }

/// CUDA's name of a real function, "" where an operator or helper stands for it.
std::string_view function_name(ExprOp op) {
  switch (op) {
    case ExprOp::floor:
    case ExprOp::ceil:
      return name_of(op);
    case ExprOp::round_even:
      return "rint";
    case ExprOp::abs:
      return "fabs";
    default:
      return is_function(op) && op != ExprOp::reciprocal ? name_of(op) : "";
  }
}

std::string_view operator_of(ExprOp op) {
  switch (op) {
    case ExprOp::add:
      return "+";
    case ExprOp::sub:
      return "-";
    case ExprOp::mul:
      return "*";
    case ExprOp::div:
      return "/";
    case ExprOp::lt:
      return "<";
    case ExprOp::le:
      return "<=";
    case ExprOp::gt:
      return ">";
    case ExprOp::ge:
      return ">=";
    case ExprOp::eq:
      return "==";
    case ExprOp::ne:
    case ExprOp::logical_xor:
      return "!=";
    case ExprOp::logical_and:
      return "&&";
    case ExprOp::logical_or:
      return "||";
    case ExprOp::bit_and:
      return "&";
    case ExprOp::bit_or:
      return "|";
    case ExprOp::bit_xor:
      return "^";
    default:
      return "";
  }
}

/// Without the parentheses around the whole.
std::string unwrapped(const std::string& text) {
  if (text.front() != '(' || text.back() != ')') return text;
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
    if (depth == 0) return at + 1 == text.size() ? text.substr(1, text.size() - 2) : text;
  }
  return text;
}

std::string unsigned_of(DType dtype) { return byte_size(dtype) == 8 ? "(unsigned long long)" : "(unsigned int)"; }

template <class T>
std::string limits_text() {
  const auto low = +std::numeric_limits<T>::min(), high = +std::numeric_limits<T>::max();  // bytes as numbers
  if constexpr (sizeof(T) == 8 && std::is_signed_v<T>) return "-0x7fffffffffffffffLL - 1, 0x7fffffffffffffffLL";
  if constexpr (sizeof(T) == 8) return "0ull, 0xffffffffffffffffull";
  return fmt::format("{}LL, {}LL", low, high);
}

std::string integer_limits(DType dtype) {
  if (bit_size(dtype) < 8) return fmt::format("{}LL, {}LL", integer_min(dtype), integer_max(dtype));
  switch (dtype) {
    case DType::i8:
      return limits_text<int8_t>();
    case DType::u8:
      return limits_text<uint8_t>();
    case DType::i16:
      return limits_text<int16_t>();
    case DType::u16:
      return limits_text<uint16_t>();
    case DType::i32:
      return limits_text<int32_t>();
    case DType::u32:
      return limits_text<uint32_t>();
    case DType::i64:
      return limits_text<int64_t>();
    default:
      return limits_text<uint64_t>();
  }
}

/// Integers of less than a byte keep their low bits.
std::string cut_off(const std::string& x, DType to) {
  if (!is_integer(to) || bit_size(to) >= 8) return x;
  const int mask = (1 << bit_size(to)) - 1, sign = is_signed(to) ? 1 << (bit_size(to) - 1) : 0;
  if (sign == 0) return fmt::format("({})({} & {})", value_type(to), x, mask);
  return fmt::format("({})((({} & {}) ^ {}) - {})", value_type(to), x, mask, sign, sign);
}

/// A call of a helper that knows formats of a byte by their numbers.
std::string byte_float(Kernel& k, const char* helper, DType dtype, const std::string& x) {
  if (dtype == DType::f8e8m0) {
    const std::string name = std::string(helper) == "byte_to_float" ? "exponent_to_float" : "float_to_exponent";
    k.use(name);
    return fmt::format("{}({})", name, x);
  }
  k.use(helper);
  const SmallFormat& f = small_format(dtype);
  return fmt::format("{}({}, {}, {}, {}, {}, {})", helper, x, bit_size(dtype) - 1, f.mantissa_bits, f.bias, f.greatest,
                     static_cast<int>(f.overflow));
}

/// Widened numbers as memory holds them, seen as another type.
std::string bit_cast_text(Kernel& k, const std::string& x, DType from, DType to) {
  const std::string bits = is_small_float(from) ? to_memory(k, from, x) : x;
  k.use("same_bits");
  const std::string seen = fmt::format("same_bits<{}>({})", memory_type(to), bits);
  return is_float(to) ? from_memory(k, to, seen) : cut_off(seen, to);
}

std::string real_literal(DType dtype, double value) {
  const bool narrow = small_float(dtype);
  if (std::isnan(value)) return narrow ? "__int_as_float(0x7fc00000)" : "__longlong_as_double(0x7ff8000000000000LL)";
  if (std::isinf(value)) {
    const std::string inf = narrow ? "__int_as_float(0x7f800000)" : "__longlong_as_double(0x7ff0000000000000LL)";
    return value < 0 ? "(-" + inf + ")" : inf;
  }
  std::string text = narrow ? fmt::format("{:.9g}", static_cast<float>(value)) : fmt::format("{:.17g}", value);
  if (narrow && static_cast<double>(static_cast<float>(value)) == value)
    if (const std::string shorter = fmt::format("{}", static_cast<float>(value)); shorter.size() < text.size())
      text = shorter;
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  if (narrow) text += "f";
  return std::signbit(value) ? "(" + text + ")" : text;
}

}  // namespace

std::string literal(DType dtype, double real, int64_t integer) {
  if (is_float(dtype)) return real_literal(dtype, real);
  if (dtype == DType::boolean) return integer ? "true" : "false";
  if (dtype == DType::i64 && integer == std::numeric_limits<int64_t>::min()) return "(-0x7fffffffffffffffLL - 1)";
  if (dtype == DType::u64) return fmt::format("{}ull", static_cast<uint64_t>(integer));
  if (dtype == DType::u32) return fmt::format("{}u", static_cast<uint32_t>(integer));
  const std::string text = fmt::format("{}{}", integer, byte_size(dtype) == 8 ? "LL" : "");
  return integer < 0 ? "(" + text + ")" : text;
}

std::string cast_text(Kernel& k, const std::string& x, DType from, DType to) {
  if (is_small_float(to)) {
    if (from == to) return x;
    return from_memory(k, to, to_memory(k, to, is_float(from) && from != DType::f64 ? x : "(float)" + x));
  }
  if (from == to || (value_type(from) == value_type(to) && (is_float(to) || bit_size(to) >= 8))) return x;
  if (to == DType::boolean) return fmt::format("({} != {})", x, is_float(from) ? literal(from, 0, 0) : "0");
  if (is_float(to) || !is_float(from)) return cut_off(fmt::format("({}){}", value_type(to), x), to);
  k.use("to_integer");
  return fmt::format("({})to_integer({}, {})", value_type(to), x, integer_limits(to));
}

std::string extremum_text(Kernel& k, bool maximum, const std::string& x, const std::string& y, DType dtype,
                          bool y_is_number) {
  if (y_is_number || !is_float(dtype)) return fmt::format("({} {} {} ? {} : {})", y, maximum ? ">" : "<", x, y, x);
  k.use(maximum ? "max_nan" : "min_nan");
  return fmt::format("{}({}, {})", maximum ? "max_nan" : "min_nan", x, y);
}

std::string from_memory(Kernel& k, DType dtype, const std::string& x) {
  if (dtype == DType::boolean) return "(" + x + " != 0)";
  if (!is_small_float(dtype)) return x;
  if (dtype == kTf32) return x;
  if (byte_size(dtype) == 1) return byte_float(k, "byte_to_float", dtype, x);
  const char* helper = dtype == DType::f16 ? "half_to_float" : "bfloat_to_float";
  k.use(helper);
  return fmt::format("{}({})", helper, x);
}

std::string to_memory(Kernel& k, DType dtype, const std::string& x) {
  if (dtype == DType::boolean) return "(unsigned char)" + x;
  if (!is_small_float(dtype)) return x;
  if (dtype == kTf32 && x.starts_with("float_to_tf32(")) return x;  // rounded already
  if (byte_size(dtype) == 1) return byte_float(k, "float_to_byte", dtype, x);
  const char* helper = dtype == DType::f16 ? "float_to_half" : dtype == kTf32 ? "float_to_tf32" : "float_to_bfloat";
  k.use(helper);
  return fmt::format("{}({})", helper, x);
}

std::string ExprText::keep(const Expr& e, DType dtype, const std::string& text) {
  const bool leaf = e.args().empty();
  if (e.is_constant() || (leaf && e.op() != ExprOp::read && e.op() != ExprOp::in_bounds)) return text;
  if (leaf && text.find_first_of(" [(?") == std::string::npos) return text;  // a name already
  if (!leaf && uses_[e.node()] < 2 && text.size() <= kInlineLength) return text;
  const std::string prefix = e.op() == ExprOp::read        ? fmt::format("r{}", e.index())
                             : e.op() == ExprOp::in_bounds ? fmt::format("in{}", e.index())
                                                           : "v";
  return k_.declare(value_type(dtype), prefix, unwrapped(text));
}

std::string ExprText::guard_of(int read) {
  const auto at = guards_.find(read);
  if (at != guards_.end()) return at->second;
  const std::string text = leaf_(Expr::in_bounds(read), "");
  return guards_[read] = text == "true" ? text : named(text, DType::boolean, fmt::format("in{}", read));
}

/// A name (or literal) for what is used twice.
std::string ExprText::named(const std::string& text, DType dtype, const std::string& prefix) {
  if (text.find_first_of(" ?") == std::string::npos) return text;
  return k_.declare(value_type(dtype), prefix, unwrapped(text));
}

std::string ExprText::emit(const Expr& e, DType dtype) {
  if (e.weak() && e.is_constant()) return compute(e, dtype);
  if (!uses_.count(e.node()))
    e.visit([&](const Expr& x) {
      uses_.try_emplace(x.node(), 0);
      for (const Expr& arg : x.args()) ++uses_[arg.node()];
    });
  if (e.weak()) return compute(e, dtype);
  auto it = memo_.find(e.node());
  if (it == memo_.end()) {
    const std::string text = compute(e, e.dtype());
    it = memo_.emplace(e.node(), keep(e, e.dtype(), text)).first;
  }
  return e.dtype() == dtype ? it->second : cast_text(k_, it->second, e.dtype(), dtype);
}

std::string ExprText::compute(const Expr& e, DType dtype) {
  switch (e.op()) {
    case ExprOp::constant: {
      const bool real = e.weak() || is_float(e.dtype());
      const double value = real ? e.value() : static_cast<double>(e.integer_value());
      return literal(dtype, value, real ? truncate_to(DType::i64, value) : e.integer_value());
    }
    case ExprOp::extent:
      return fmt::format("(long long)({})", k_.text_of(e.dim()));
    case ExprOp::read:
      return leaf_(e, guarded_.count(e.index()) ? guard_of(e.index()) : "");
    case ExprOp::in_bounds:
      return guard_of(e.index());
    case ExprOp::coord:
    case ExprOp::result:
      return leaf_(e, "");
    case ExprOp::cast:
      return cast_text(k_, emit(e.args()[0]), e.args()[0].dtype(), e.dtype());
    case ExprOp::bit_cast:
      return bit_cast_text(k_, emit(e.args()[0]), e.args()[0].dtype(), e.dtype());
    case ExprOp::select: {
      const Expr &asked = e.args()[0], &chosen = e.args()[1], &other = e.args()[2];
      // a guarded read is zero outside as it is
      if (asked.op() == ExprOp::in_bounds && chosen.op() == ExprOp::read && chosen.index() == asked.index() &&
          other.is_constant() && is_float(chosen.dtype()) && other.value() == 0)
        return emit(chosen, dtype);
      const std::string condition = emit(e.args()[0], DType::boolean);
      const std::string x = emit(e.args()[1], dtype), y = emit(e.args()[2], dtype);
      return x == y ? x : fmt::format("({} ? {} : {})", condition, x, y);
    }
    default:
      break;
  }
  if (arity(e.op()) == 2) return binary(e, dtype);
  const Expr& x = e.args()[0];
  const DType type = x.weak() ? dtype : x.dtype();
  return unary(e.op(), type, emit(x, type));
}

std::string ExprText::unary(ExprOp op, DType dtype, const std::string& x) {
  const bool real = is_float(dtype);
  const std::string zero = literal(dtype, 0, 0);
  switch (op) {
    case ExprOp::neg:
      if (real) return fmt::format("(-{})", x);
      return fmt::format("({})(0 - {}{})", value_type(dtype), unsigned_of(dtype), x);
    case ExprOp::abs:
      if (real) break;
      if (!is_signed(dtype)) return x;
      return fmt::format("({} < 0 ? {} : {})", x, unary(ExprOp::neg, dtype, x), x);
    case ExprOp::sign:
      if (real)
        return fmt::format("({0} != {0} ? {0} : ({1})({0} > {2}) - ({1})({0} < {2}))", x, value_type(dtype), zero);
      return fmt::format("(({})({} > {}) - ({})({} < {}))", value_type(dtype), x, zero, value_type(dtype), x, zero);
    case ExprOp::is_nan:
      return real ? fmt::format("({} != {})", x, x) : "false";
    case ExprOp::is_inf:
      if (!real) return "false";
      return fmt::format("(fabs{}({}) == {})", small_float(dtype) ? "f" : "", x,
                         literal(dtype, std::numeric_limits<double>::infinity(), 0));
    case ExprOp::logical_not:
      return "(!" + x + ")";
    case ExprOp::bit_not:
      return fmt::format("({})(~{})", value_type(dtype), x);
    case ExprOp::floor:
    case ExprOp::ceil:
    case ExprOp::round_even:
      if (!real) return x;
      break;
    case ExprOp::reciprocal:
      if (is_half(dtype)) {
        k_.use("quotient");
        return fmt::format("quotient(1.0f, {})", x);
      }
      if (!real) return integer_binary(ExprOp::div, dtype, literal(dtype, 1, 1), x);
      return fmt::format("({} / {})", literal(dtype, 1, 1), x);
    default:
      break;
  }
  if (!real)  // real functions of integers: through double
    return cast_text(k_, unary(op, DType::f64, "(double)" + x), DType::f64, dtype);
  const std::string_view name = function_name(op);
  if (name.empty()) throw fail(E::codegen_failed, "{} of {} is not generated", name_of(op), name_of(dtype));
  return fmt::format("{}{}({})", name, small_float(dtype) ? "f" : "", x);
}

std::string ExprText::binary(const Expr& e, DType dtype) {
  const Expr &left = e.args()[0], &right = e.args()[1];
  const ExprOp op = e.op();
  const bool comparison = op >= ExprOp::lt && op <= ExprOp::ne;
  const DType type = left.weak() && right.weak() ? (comparison ? DType::f64 : dtype)
                     : left.weak()               ? right.dtype()
                                                 : left.dtype();
  std::string x = emit(left, type);
  if (op == ExprOp::pow || op == ExprOp::min || op == ExprOp::max) x = named(x, type);
  if (op == ExprOp::pow && is_float(type) && right.is_constant() && (right.weak() || is_float(right.dtype()))) {
    if (right.value() == 2) return fmt::format("({} * {})", x, x);
    if (right.value() == 3) return fmt::format("({} * {} * {})", x, x, x);
    if (right.value() == 1) return x;
    if (right.value() == -1) return unary(ExprOp::reciprocal, type, x);
  }
  std::string y = emit(right, type);
  if (op == ExprOp::min || op == ExprOp::max) y = named(y, type);
  if (op == ExprOp::min || op == ExprOp::max) {
    if (left.is_constant() && !right.is_constant())
      return extremum_text(k_, op == ExprOp::max, y, x, type, is_number(left));
    return extremum_text(k_, op == ExprOp::max, x, y, type, is_number(right));
  }
  if (comparison) return fmt::format("({} {} {})", x, operator_of(op), y);
  if (op == ExprOp::div && is_half(type)) return half_quotient(right, x, y);
  if (op == ExprOp::div && small_float(type) && right.is_constant())
    return quotient_of(static_cast<float>(right.value()), x, y);
  return is_float(type) ? real_binary(op, type, x, y) : integer_binary(op, type, x, y);
}

/// Division in 16-bit types, which are computed in float and rounded at the end: by a constant, times its reciprocal;
/// else by the instruction that is off by 2 units of a float, and calls nothing.
std::string ExprText::half_quotient(const Expr& divisor, const std::string& x, const std::string& y) {
  if (divisor.is_constant()) {
    const float by = static_cast<float>(1.0 / divisor.value());
    if (std::isnormal(by) && std::isnormal(static_cast<float>(divisor.value())))
      return fmt::format("({} * {})", x, literal(DType::f32, by, 0));
  }
  k_.use("quotient");
  return fmt::format("quotient({}, {})", x, y);
}

/// Division by a constant without the call that the operator has for extreme divisors: its reciprocal as two numbers,
/// of one sign so that infinities and zeros stay what they are.
std::string ExprText::quotient_of(float divisor, const std::string& x, const std::string& y) {
  if (!(divisor > 0x1p-60F && divisor < 0x1p60F)) return fmt::format("({} / {})", x, y);
  const double by = 1.0 / static_cast<double>(divisor);
  auto high = static_cast<float>(by);
  if (static_cast<double>(high) * static_cast<double>(divisor) == 1.0)
    return fmt::format("({} * {})", x, literal(DType::f32, high, 0));
  if (static_cast<double>(high) > by) high = std::nextafter(high, 0.0F);
  k_.use("divided");
  return fmt::format("divided({}, {}, {})", unwrapped(x), literal(DType::f32, high, 0),
                     literal(DType::f32, by - static_cast<double>(high), 0));
}

std::string ExprText::real_binary(ExprOp op, DType dtype, const std::string& x, const std::string& y) {
  if (const std::string_view symbol = operator_of(op); !symbol.empty()) return fmt::format("({} {} {})", x, symbol, y);
  const char* suffix = small_float(dtype) ? "f" : "";
  if (op == ExprOp::pow) return fmt::format("pow{}({}, {})", suffix, x, y);
  if (op == ExprOp::fmod) return fmt::format("fmod{}({}, {})", suffix, x, y);
  if (op == ExprOp::mod) {
    k_.use("float_mod");
    return fmt::format("float_mod({}, {})", x, y);
  }
  throw fail(E::codegen_failed, "{} of real numbers is not generated", name_of(op));
}

std::string wrapping_text(DType dtype, const std::string& x, std::string_view op, const std::string& y) {
  return fmt::format("({})({}{} {} {}{})", value_type(dtype), unsigned_of(dtype), x, op, unsigned_of(dtype), y);
}

std::string ExprText::integer_binary(ExprOp op, DType dtype, const std::string& x, const std::string& y) {
  const std::string type = value_type(dtype);
  const auto call = [&](const char* helper) {
    k_.use(helper);
    return fmt::format("{}<{}>({}, {})", helper, type, x, y);
  };
  switch (op) {
    case ExprOp::add:
    case ExprOp::sub:
    case ExprOp::mul:
      return wrapping_text(dtype, x, operator_of(op), y);
    case ExprOp::logical_and:
    case ExprOp::logical_or:
    case ExprOp::logical_xor:
      return fmt::format("({} {} {})", x, operator_of(op), y);
    case ExprOp::bit_and:
    case ExprOp::bit_or:
    case ExprOp::bit_xor:
      return fmt::format("({})({} {} {})", type, x, operator_of(op), y);
    case ExprOp::div:
      return call("int_div");
    case ExprOp::mod:
      return call("int_mod");
    case ExprOp::fmod:
      return call("int_rem");
    case ExprOp::pow:
      return call("int_pow");
    case ExprOp::shift_left:
      return call("shift_left");
    case ExprOp::shift_right:
      return call("shift_right");
    default:
      throw fail(E::codegen_failed, "{} of {} is not generated", name_of(op), name_of(dtype));
  }
}

}  // namespace opfuse::cuda
