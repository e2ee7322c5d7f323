// The functions an operator law may use, for every value domain S: `double` (fast real reference),
// `Scalar` (typed constants) and `Expr` (code generation). Laws choose with `select`, never with `if`:
//
//   template <class S> static S eval(const Attrs& a, S x) {
//     return select(less(x, S(0)), S(a.alpha) * x, x);
//   }
//
// All functions are found by ADL-free overloads in namespace opfuse. Comparisons of domain S return
// Bool<S> (bool for double, Scalar for Scalar, Expr for Expr).
#pragma once

#include <cmath>

#include "expr/expr.hpp"

namespace opfuse {

/// A typed constant: the interpreter's and constant folder's domain. Integers and booleans exact.
struct Scalar {
  ScalarValue v;
  bool weak = false;
  Precision precision = Precision::exact;
  Scalar() = default;
  explicit Scalar(double weak_constant) : v{DType::f64, weak_constant, 0}, weak(true) {}
  explicit Scalar(ScalarValue value, Precision p = Precision::exact) : v(value), precision(p) {}
};
/// Applies one operation with weak-constant promotion and result dtype rules shared with Expr::make.
Scalar apply(ExprOp op, std::initializer_list<Scalar> args);

/// Result dtype of an operation (comparisons: boolean; others: that of the first strong operand).
DType result_dtype(ExprOp op, const std::vector<DType>& args);

template <class S>
struct BoolOf {
  using type = S;
};
template <>
struct BoolOf<double> {
  using type = bool;
};
template <class S>
using Bool = typename BoolOf<S>::type;

#define OPFUSE_UNARY(name)                                                  \
  inline Expr name(const Expr& x) { return Expr::make(ExprOp::name, {x}); } \
  inline Scalar name(const Scalar& x) { return apply(ExprOp::name, {x}); }
OPFUSE_UNARY(neg)
OPFUSE_UNARY(abs)
OPFUSE_UNARY(sign)
OPFUSE_UNARY(exp)
OPFUSE_UNARY(log)
OPFUSE_UNARY(sqrt)
OPFUSE_UNARY(rsqrt)
OPFUSE_UNARY(reciprocal)
OPFUSE_UNARY(tanh)
OPFUSE_UNARY(erf)
OPFUSE_UNARY(sin)
OPFUSE_UNARY(cos)
OPFUSE_UNARY(tan)
OPFUSE_UNARY(asin)
OPFUSE_UNARY(acos)
OPFUSE_UNARY(atan)
OPFUSE_UNARY(sinh)
OPFUSE_UNARY(cosh)
OPFUSE_UNARY(asinh)
OPFUSE_UNARY(acosh)
OPFUSE_UNARY(atanh)
OPFUSE_UNARY(floor)
OPFUSE_UNARY(ceil)
OPFUSE_UNARY(round_even)
OPFUSE_UNARY(is_nan)
OPFUSE_UNARY(is_inf)
OPFUSE_UNARY(logical_not)
OPFUSE_UNARY(bit_not)
#undef OPFUSE_UNARY

#define OPFUSE_BINARY(name, op)                                                             \
  inline Expr name(const Expr& a, const Expr& b) { return Expr::make(ExprOp::op, {a, b}); } \
  inline Scalar name(const Scalar& a, const Scalar& b) { return apply(ExprOp::op, {a, b}); }
OPFUSE_BINARY(operator+, add)
OPFUSE_BINARY(operator-, sub)
OPFUSE_BINARY(operator*, mul)
OPFUSE_BINARY(operator/, div)
OPFUSE_BINARY(mod, mod)
OPFUSE_BINARY(fmod, fmod)
OPFUSE_BINARY(minimum, min)
OPFUSE_BINARY(maximum, max)
OPFUSE_BINARY(pow, pow)
OPFUSE_BINARY(less, lt)
OPFUSE_BINARY(less_equal, le)
OPFUSE_BINARY(greater, gt)
OPFUSE_BINARY(greater_equal, ge)
OPFUSE_BINARY(equal, eq)
OPFUSE_BINARY(not_equal, ne)
OPFUSE_BINARY(logical_and, logical_and)
OPFUSE_BINARY(logical_or, logical_or)
OPFUSE_BINARY(logical_xor, logical_xor)
OPFUSE_BINARY(bit_and, bit_and)
OPFUSE_BINARY(bit_or, bit_or)
OPFUSE_BINARY(bit_xor, bit_xor)
OPFUSE_BINARY(shift_left, shift_left)
OPFUSE_BINARY(shift_right, shift_right)
#undef OPFUSE_BINARY
inline Expr operator-(const Expr& x) { return neg(x); }
inline Scalar operator-(const Scalar& x) { return neg(x); }
inline Expr select(const Expr& c, const Expr& a, const Expr& b) { return Expr::make(ExprOp::select, {c, a, b}); }
inline Scalar select(const Scalar& c, const Scalar& a, const Scalar& b) { return apply(ExprOp::select, {c, a, b}); }
inline Expr cast(const Expr& x, DType to) { return Expr::make_cast(x, to); }
Scalar cast(const Scalar& x, DType to);
inline Expr bit_cast(const Expr& x, DType to) { return Expr::make_bit_cast(x, to); }
Scalar bit_cast(const Scalar& x, DType to);

// The plain double domain: used where every operand is a float (fast reference path).
inline double neg(double x) { return -x; }
inline double abs(double x) { return std::fabs(x); }
inline double sign(double x) { return std::isnan(x) ? x : static_cast<double>((x > 0) - (x < 0)); }
inline double exp(double x) { return std::exp(x); }
inline double log(double x) { return std::log(x); }
inline double sqrt(double x) { return std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline double reciprocal(double x) { return 1.0 / x; }
inline double tanh(double x) { return std::tanh(x); }
inline double erf(double x) { return std::erf(x); }
inline double sin(double x) { return std::sin(x); }
inline double cos(double x) { return std::cos(x); }
inline double tan(double x) { return std::tan(x); }
inline double asin(double x) { return std::asin(x); }
inline double acos(double x) { return std::acos(x); }
inline double atan(double x) { return std::atan(x); }
inline double sinh(double x) { return std::sinh(x); }
inline double cosh(double x) { return std::cosh(x); }
inline double asinh(double x) { return std::asinh(x); }
inline double acosh(double x) { return std::acosh(x); }
inline double atanh(double x) { return std::atanh(x); }
inline double floor(double x) { return std::floor(x); }
inline double ceil(double x) { return std::ceil(x); }
inline double round_even(double x) { return std::nearbyint(x); }
inline bool is_nan(double x) { return std::isnan(x); }
inline bool is_inf(double x) { return std::isinf(x); }
inline bool logical_not(bool x) { return !x; }
inline bool logical_and(bool a, bool b) { return a && b; }
inline bool logical_or(bool a, bool b) { return a || b; }
inline bool logical_xor(bool a, bool b) { return a != b; }
inline double fmod(double a, double b) { return std::fmod(a, b); }
// The remainder with the divisor's sign, that of a zero too.
inline double mod(double a, double b) {
  const double r = std::fmod(a, b);
  if (r == 0) return std::copysign(r, b);
  return (r < 0) != (b < 0) ? r + b : r;
}
// NaN in either operand gives NaN, as ONNX Min/Max/Relu/Clip do.
inline double minimum(double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : a < b ? a : b; }
inline double maximum(double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : a > b ? a : b; }
inline double pow(double a, double b) { return std::pow(a, b); }
inline bool less(double a, double b) { return a < b; }
inline bool less_equal(double a, double b) { return a <= b; }
inline bool greater(double a, double b) { return a > b; }
inline bool greater_equal(double a, double b) { return a >= b; }
inline bool equal(double a, double b) { return a == b; }
inline bool not_equal(double a, double b) { return a != b; }
inline double select(bool c, double a, double b) { return c ? a : b; }

}  // namespace opfuse
