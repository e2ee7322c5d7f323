// Running error analysis, one operation at a time. A number and its error are an interval: an operation is evaluated at
// the ends of its operands' intervals, and its own rounding widens what comes out. A threshold (rounding to a step, a
// comparison) inside the interval allows both of its sides, and nothing between. A result that was exact in all
// operands and is a number of its type has no error: kernels must have the same bits.
#include "proof/error_rules.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "expr/domain.hpp"
#include "expr/real_ops.hpp"
#include "tensor/number.hpp"
#include "tensor/small_float.hpp"
#include "tensor/tf32.hpp"

namespace opfuse {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Tables of activations keep their ULPs above -1; the argument may be a little off.
constexpr double kTableEnd = -0.99;

struct FunctionUlps {
  ExprOp op;
  double ulps;
};
// tests/codegen/math_test.cpp proves these for CPUs; CUDA's functions keep 2.
constexpr FunctionUlps kFunctions[] = {
    {ExprOp::exp, 2},   {ExprOp::log, 2},   {ExprOp::sqrt, 0.51}, {ExprOp::rsqrt, 2}, {ExprOp::reciprocal, 1},
    {ExprOp::tanh, 2},  {ExprOp::erf, 4},   {ExprOp::sin, 2},     {ExprOp::cos, 2},   {ExprOp::tan, 4},
    {ExprOp::asin, 4},  {ExprOp::acos, 4},  {ExprOp::atan, 4},    {ExprOp::sinh, 4},  {ExprOp::cosh, 4},
    {ExprOp::asinh, 4}, {ExprOp::acosh, 4}, {ExprOp::atanh, 4},   {ExprOp::div, 1},   {ExprOp::pow, 8}};

bool is_step(ExprOp op) {
  return op == ExprOp::floor || op == ExprOp::ceil || op == ExprOp::round_even || op == ExprOp::sign;
}
/// The result is an operand, or its negative: nothing is rounded. A coordinate that is cut to a border is on it.
bool picks(ExprOp op) { return op == ExprOp::min || op == ExprOp::max || op == ExprOp::neg || op == ExprOp::abs; }
bool is_comparison(ExprOp op) { return op >= ExprOp::lt && op <= ExprOp::ne; }
bool is_power_of_two(double v) {
  int exponent = 0;
  return std::fabs(std::frexp(v, &exponent)) == 0.5;
}

/// What lies `by` from the number may be the kernel's too.
void reach(double by, Reach& e) {
  if (std::isnan(by)) e = Reach::anywhere();
  e = {std::max(e.below, -by), std::max(e.above, by)};
}

/// The largest number there may be, without its sign.
double greatest(double v, const Reach& e) { return std::max(std::fabs(v - e.below), std::fabs(v + e.above)); }

/// What is off at the ends by `off` of the magnitude there, at least by that of `v`: an end may be infinite, the other
/// is not by that.
template <class Off>
Reach at_ends(double v, const Reach& e, Off&& off) {
  const double size = std::fabs(v);
  return {off(std::max(size, std::fabs(v - e.below))), off(std::max(size, std::fabs(v + e.above)))};
}

struct Number {
  double v = 0;
  Reach e;
  bool tie = false;
};

/// One lane of an operation whose result is real.
class RealLane {
 public:
  RealLane(ExprOp op, DType dtype, std::span<const Lanes* const> args, int lane, bool typed)
      : op_(op), dtype_(dtype), args_(args), lane_(lane), typed_(typed) {
    for (size_t i = 0; i < args.size(); ++i) {
      x_[i] = args[i]->real(lane);
      e_[i] = args[i]->error_of(lane);
      tie_ = tie_ || args[i]->tie_of(lane);
      exact_ = exact_ && e_[i].none();
    }
  }

  Number run(double ulps) {
    const double v = value(x_[0], x_[1]);
    if (std::isinf(v)) return {v, is_surely(v) ? Reach() : Reach::anywhere(), tie_};
    if (std::isnan(v)) return {v, exact_ || is_surely_nan() ? Reach() : Reach::anywhere(), tie_};
    Reach e = exact_ ? Reach() : claimed(spread(v));
    if (typed_ && (op_ == ExprOp::add || op_ == ExprOp::sub)) return rounded(v, e);
    const double rounding = rounding_of(dtype_, v), least = smallest_normal_of(dtype_);
    if (!typed_) e += Reach::both(past_overflow(v));
    const bool bits = exact_ && ulps <= 0.5 + 0.02;
    const bool quotient = op_ == ExprOp::div && exact_ && (is_power_of_two(x_[1]) || v == 0 || is_whole_quotient(v));
    if (bits || quotient)
      e += Reach::both(rounding);
    else if (picks(op_))
      e += Reach::both(std::fabs(v) < least ? std::fabs(v) : 0);
    else if (!is_step(op_))
      e += at_ends(v, e, [&](double end) {
        return std::min(most_rounding(), std::max(rounding, 2 * ulps * unit_of(dtype_) * end)) + least;
      });
    return {v, e, tie_};
  }

 private:
  ExprOp op_;
  DType dtype_;
  std::span<const Lanes* const> args_;
  int lane_;
  bool typed_;
  double x_[3] = {0, 0, 0};
  Reach e_[3];
  bool tie_ = false, exact_ = true;

  double value(double a, double b) const {
    if (is_real_unary(op_)) return real_unary(op_, a);
    if (is_real_binary(op_)) return real_binary(op_, a, b);
    const ScalarValue given[] = {{args_[0]->dtype, a, 0}, {args_.back()->dtype, b, 0}};
    return evaluate_op(op_, dtype_, {given, given + args_.size()}, Precision::exact).real;
  }

  double low(size_t i) const { return x_[i] - e_[i].below; }
  double high(size_t i) const { return x_[i] + e_[i].above; }

  /// An infinite result (a mask's -inf and what is added to it) has no rounding: it is what it is, or anything.
  bool is_surely(double v) const {
    for (size_t i = 0; i < args_.size(); ++i) {
      if (!std::isfinite(e_[i].most())) return false;
      for (const double end : {low(i), high(i)})
        if (i < 2 && value(i == 0 ? end : x_[0], i == 1 ? end : x_[1]) != v) return false;
    }
    return true;
  }

  /// The root of a rest that may be on either side of 0 is NaN on one of them.
  bool is_surely_nan() const {
    if (op_ == ExprOp::add || op_ == ExprOp::sub || op_ == ExprOp::mul) return true;  // of NaN or infinities
    for (const double a : {low(0), high(0)})
      for (const double b : {low(1), high(1)})
        if (!std::isnan(value(a, b))) return false;
    return true;
  }

  /// A sum rounds to steps of its type, as a kernel does: what a large addend swallows of the other's error is gone.
  Number rounded(double v, const Reach& e) const {
    const double at = round_to(dtype_, v), down = round_to(dtype_, v - e.below), up = round_to(dtype_, v + e.above);
    if (!std::isfinite(e.most()) || !std::isfinite(down) || !std::isfinite(up)) return {v, e, tie_};
    const bool flushed = at != 0 && std::fabs(at) < smallest_normal_of(dtype_);
    return {at, Reach{at - down, up - at} + Reach::both(flushed ? smallest_normal_of(dtype_) : 0), tie_};
  }

  /// Rounding moves a sum at most as far as to either operand, itself a number of the type. So a mask of the lowest
  /// number hides a score instead of overflowing with it.
  double most_rounding() const {
    if (op_ != ExprOp::add && op_ != ExprOp::sub) return kInfinity;
    return std::min(greatest(x_[0], e_[0]), greatest(x_[1], e_[1]));
  }

  /// Kernels divide f64 as IEEE asks, so a quotient without a remainder has its bits: a position that a resize computes
  /// does not fall on either side of its pixel.
  bool is_whole_quotient(double v) const { return dtype_ == DType::f64 && std::fma(v, x_[1], -x_[0]) == 0; }

  /// Of 0 for 1 / infinity: the infinite operand may be a finite number that has no place in the type.
  double past_overflow(double v) const {
    if (v != 0 || !std::isinf(x_[op_ == ExprOp::div ? 1 : 0])) return 0;
    const double most = largest_of(dtype_);
    if (op_ == ExprOp::div) return std::fabs(x_[0]) / most;
    return op_ == ExprOp::reciprocal ? 1 / most : op_ == ExprOp::rsqrt ? 1 / std::sqrt(most) : 0;
  }

  /// What the operands' errors make of it.
  Reach spread(double v) {
    switch (op_) {
      case ExprOp::neg:
        return -e_[0];
      case ExprOp::abs:
        return spread_of_size(v);
      case ExprOp::add:
        return e_[0] + e_[1];
      case ExprOp::sub:
        return e_[0] + -e_[1];
      case ExprOp::mul:
        return at_corners([&](double a, double b) { return times(x_[0], b) + times(x_[1], a) + times(a, b); });
      case ExprOp::div:
        if (!(low(1) > 0) && !(high(1) < 0)) return Reach::anywhere();
        return at_corners([&](double a, double b) {
          const bool vanishes = std::isinf(b) && std::isfinite(a);
          return vanishes ? -v : (a - times(v, b)) / (x_[1] + b);
        });
      case ExprOp::min:
        return -spread_of_larger(-x_[0], -e_[0], -x_[1], -e_[1]);
      case ExprOp::max:
        return spread_of_larger(x_[0], e_[0], x_[1], e_[1]);
      case ExprOp::sin:
      case ExprOp::cos:
        return Reach::both(std::min(e_[0].most(), 2.0));
      case ExprOp::mod:
      case ExprOp::fmod:
        return Reach::both(spread_of_remainder());
      default:
        return spread_at_ends(v);
    }
  }

  static double times(double x, double error) { return error == 0 ? 0 : x * error; }

  /// `off`: how far the result is when the operands are off by so much; in each of them it grows or falls throughout.
  template <class Off>
  Reach at_corners(Off&& off) const {
    Reach e;
    for (const double a : {-e_[0].below, e_[0].above})
      for (const double b : {-e_[1].below, e_[1].above}) reach(off(a, b), e);
    return e;
  }

  Reach spread_of_size(double v) const {
    const Reach e = x_[0] < 0 ? -e_[0] : e_[0];
    return {std::min(e.below, v), std::max(e.above, e.below - 2 * v)};
  }

  /// max(a, b), of which either may be the larger one; both may be -inf.
  static Reach spread_of_larger(double a, const Reach& of_a, double b, const Reach& of_b) {
    if (a < b) return spread_of_larger(b, of_b, a, of_a);
    const double gap = a == b ? 0 : a - b;
    return {std::min(of_a.below, gap + of_b.below), std::max(of_b.above - gap, of_a.above)};
  }

  double spread_of_remainder() {
    const double quotient = x_[0] / x_[1], e = e_[0].most() + std::fabs(quotient) * e_[1].most();
    const double off = e / std::fabs(x_[1]);
    if (std::floor(quotient - off) == std::floor(quotient + off)) return e;
    tie_ = true;
    return std::fabs(x_[1]) + e_[0].most();
  }

  /// A value between the ends is between the results there; but for 0, where even functions turn.
  Reach spread_at_ends(double v) {
    double at[2][3];
    int count[2] = {0, 0};
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const double from = op_ == ExprOp::sqrt && x_[i] >= 0 ? std::max(low(i), 0.0) : low(i), to = high(i);
      at[i][count[i]++] = from;
      if (to != from) at[i][count[i]++] = to;
      if (from < 0 && to > 0) at[i][count[i]++] = 0;
    }
    Reach e;
    for (int a = 0; a < count[0]; ++a)
      for (int b = 0; b < count[1]; ++b)
        if (const double there = value(at[0][a], at[1][b]); there != v) reach(there - v, e);
    tie_ = tie_ || (is_step(op_) && !e.none());
    return e;
  }
};

ScalarValue given_in(const Lanes& x, int lane) {
  const auto at = static_cast<size_t>(lane);
  return {x.dtype, is_float(x.dtype) ? x.value[at] : 0, is_float(x.dtype) ? 0 : x.integer[at]};
}

ScalarValue moved(ScalarValue x, double by) {
  x.real += by;
  x.integer += static_cast<int64_t>(std::clamp(by, -0x1p62, 0x1p62));
  return x;
}

/// Every operand at either of its ends.
Reach ends_of_integers(ExprOp op, DType dtype, std::span<const Lanes* const> args, int lane, double v) {
  Reach all;
  for (unsigned corner = 0; corner < 1U << args.size(); ++corner) {
    std::vector<ScalarValue> there;
    for (const Lanes* a : args) {
      const Reach e = a->error_of(lane);
      if (!std::isfinite(e.most())) return Reach::anywhere();
      there.push_back(moved(given_in(*a, lane), (corner >> there.size()) % 2 ? e.above : -e.below));
    }
    reach(evaluate_op(op, dtype, there, Precision::exact).as_real() - v, all);
  }
  return all;
}

/// Whether a logical value may be the other one.
bool may_flip(ExprOp op, std::span<const Lanes* const> args, int lane) {
  const Reach ea = args[0]->error_of(lane), eb = args.size() > 1 ? args[1]->error_of(lane) : Reach();
  if (ea.none() && eb.none()) return false;
  const double a = args[0]->real(lane), b = args.size() > 1 ? args[1]->real(lane) : 0;
  switch (op) {
    case ExprOp::logical_and:
      return (!ea.none() && (b != 0 || !eb.none())) || (!eb.none() && (a != 0 || !ea.none()));
    case ExprOp::logical_or:
      return (!ea.none() && (b == 0 || !eb.none())) || (!eb.none() && (a == 0 || !ea.none()));
    case ExprOp::logical_not:
    case ExprOp::logical_xor:
      return true;
    case ExprOp::is_nan:
    case ExprOp::is_inf:
      return !std::isfinite(ea.most());
    default:
      return is_comparison(op) && !(a - b > ea.below + eb.above) && !(b - a > ea.above + eb.below);
  }
}

/// One lane of an operation whose result is an integer or a boolean. `given`: scratch.
void integer_lane(ExprOp op, DType dtype, std::span<const Lanes* const> args, int lane, std::vector<ScalarValue>& given,
                  Lanes& out) {
  const auto at = static_cast<size_t>(lane);
  given.clear();
  bool exact = true, tie = false;
  for (const Lanes* a : args) {
    given.push_back(given_in(*a, lane));
    exact = exact && a->error_of(lane).none();
    tie = tie || a->tie_of(lane);
  }
  const ScalarValue v = evaluate_op(op, dtype, given, Precision::exact);
  out.integer[at] = v.integer;
  if (exact) return;
  if (dtype == DType::boolean) {
    const bool flips = op == ExprOp::cast ? true : may_flip(op, args, lane);
    const Reach other = v.integer ? Reach{1, 0} : Reach{0, 1};
    return out.set_error(lane, flips ? other : Reach(), flips || tie);
  }
  const Reach e = ends_of_integers(op, dtype, args, lane, v.as_real());
  out.set_error(lane, e, !e.none() || tie);
}

void select_lane(std::span<const Lanes* const> args, int lane, Lanes& out) {
  const auto at = static_cast<size_t>(lane);
  const Lanes& c = *args[0];
  const bool first = c.integer[at] != 0;
  const Lanes &chosen = *args[first ? 1 : 2], &other = *args[first ? 2 : 1];
  if (is_float(out.dtype))
    out.value[at] = chosen.real(lane);
  else
    out.integer[at] = chosen.integer[at];
  if (c.outside_of(lane) || chosen.outside_of(lane)) out.set_outside(lane);
  Reach e = chosen.error_of(lane);
  const bool may_be_other = !c.error_of(lane).none();
  if (may_be_other && !other.outside_of(lane)) {
    const double a = chosen.real(lane), b = other.real(lane), off = a == b ? 0 : b - a;
    const Reach there = other.error_of(lane);
    reach(off - there.below, e);
    reach(off + there.above, e);
  }
  if (!e.none()) out.set_error(lane, e, chosen.tie_of(lane) || may_be_other);
}

/// Bits that may be off say nothing.
Number bit_cast_lane(DType dtype, const Lanes& x, int lane) {
  const double v = evaluate_op(ExprOp::bit_cast, dtype, {given_in(x, lane)}, Precision::exact).real;
  return {v, x.error_of(lane).none() ? Reach() : Reach::anywhere(), x.tie_of(lane)};
}

/// add, sub, mul of exact f32 operands: most of what there is.
bool apply_plain(ExprOp op, DType dtype, std::span<const Lanes* const> args, int count, Lanes& out) {
  if (dtype != DType::f32 || args.size() != 2 || !args[0]->certain || !args[1]->certain) return false;
  if (args[0]->dtype != DType::f32 || args[1]->dtype != DType::f32) return false;
  if (op != ExprOp::add && op != ExprOp::sub && op != ExprOp::mul) return false;
  const double *a = args[0]->value.data(), *b = args[1]->value.data();
  double* v = out.value.data();
  if (op == ExprOp::add)
    for (int i = 0; i < count; ++i) v[i] = a[i] + b[i];
  else if (op == ExprOp::sub)
    for (int i = 0; i < count; ++i) v[i] = a[i] - b[i];
  else
    for (int i = 0; i < count; ++i) v[i] = a[i] * b[i];
  for (int i = 0; i < count; ++i)
    if (const double e = rounding_of(dtype, v[i]); e != 0 && !std::isnan(v[i])) out.set_error(i, Reach::both(e), false);
  return true;
}

/// A score and a mask of -1e9: in an exponent, 2^-6 is a difference.
bool is_swallowed(DType computed, double sum, double a, double b) {
  const double rounding = unit_of(computed) * std::fabs(sum), smaller = std::min(std::fabs(a), std::fabs(b));
  return rounding >= 0x1p-6 && smaller > 0 && rounding >= 0x1p-10 * smaller;
}

/// What overflows in the type is infinite there, or may be: the exact number is kept, as it is what the graph says, and
/// infinity lies in its reach. Types without infinities saturate.
void overflow(DType computed, bool typed, Lanes& out, int count) {
  const double most = largest_of(computed);
  for (int i = 0; i < count; ++i) {
    double& v = out.value[static_cast<size_t>(i)];
    Reach e = out.error_of(i);
    if (!(greatest(v, e) > most) || std::isinf(v)) continue;
    out.swallows = true;
    const bool tie = out.tie_of(i);
    const bool surely = std::fabs(v) - (v > 0 ? e.below : e.above) > most * (1 + unit_of(computed));
    if (surely && (typed || byte_size(computed) == 1)) {
      v = byte_size(computed) == 1 ? round_to(computed, v) : std::copysign(kInfinity, v);
      out.set_error(i, {}, false);
      continue;
    }
    if (surely) (v > 0 ? e.below : e.above) = std::fabs(v) - most;
    if (v + e.above > most) e.above = kInfinity;
    if (v - e.below < -most) e.below = kInfinity;
    out.set_error(i, e, tie);
  }
}

}  // namespace

DType computed_in(DType dtype) { return is_small_float(dtype) ? DType::f32 : dtype; }

double unit_of(DType dtype) {
  if (dtype == kTf32) return 0x1p-11;
  switch (dtype) {
    case DType::f16:
      return 0x1p-11;
    case DType::bf16:
      return 0x1p-8;
    case DType::f64:
      return 0x1p-50;
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
      return 0x1p-4;
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
      return 0x1p-3;
    case DType::f4e2m1:
      return 0x1p-2;
    case DType::f8e8m0:
      return 1;
    default:
      return 0x1p-24;
  }
}

double largest_of(DType dtype) { return greatest_of(dtype); }

double smallest_normal_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 0x1p-24;  // kernels have the denormal numbers of halves
    case DType::f64:
      return std::numeric_limits<double>::min();
    case DType::f8e8m0:
      return 0x1p-127;
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f4e2m1:
      return from_byte_float(dtype, 1);
    default:
      return 0x1p-126;
  }
}

double rounding_of(DType dtype, double v) {
  if (v == 0 || dtype == DType::f64 || !std::isfinite(v)) return 0;
  const double small = smallest_normal_of(dtype);
  const bool number = dtype == DType::f32 ? static_cast<double>(static_cast<float>(v)) == v : round_to(dtype, v) == v;
  if (number && std::fabs(v) >= small) return 0;
  return unit_of(dtype) * std::fabs(v) + (std::fabs(v) < 0x1p10 * small ? small : 0);
}

Reach stored_error(DType dtype, double v, const Reach& error) {
  if (error.none() || computed_in(dtype) == dtype) return error + Reach::both(rounding_of(dtype, v));
  return error + at_ends(v, error, [&](double end) { return unit_of(dtype) * end + smallest_normal_of(dtype); });
}

double ulps_of(ExprOp op) {
  for (const FunctionUlps& f : kFunctions)
    if (f.op == op) return f.ulps;
  return 0.5;
}

void apply_with_error(ExprOp op, DType dtype, std::span<const Lanes* const> args, const OperationNote& note,
                      const Lanes* argument, int count, Lanes& out) {
  out.reset(dtype);
  const DType computed = op == ExprOp::cast ? dtype : computed_in(dtype);
  if (op == ExprOp::select) {
    for (int i = 0; i < count; ++i) select_lane(args, i, out);
    return;
  }
  for (const Lanes* a : args)
    for (int i = 0; !a->inside && i < count; ++i)
      if (a->outside_of(i)) out.set_outside(i);
  if (!is_float(dtype)) {
    std::vector<ScalarValue> given;
    for (int i = 0; i < count; ++i) integer_lane(op, dtype, args, i, given, out);
    return;
  }
  if (note.typed || !apply_plain(op, dtype, args, count, out)) {
    const double ulps = std::max(note.ulps, ulps_of(op));
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      Number n;
      if (op == ExprOp::cast)
        n = {args[0]->real(i), stored_error(dtype, args[0]->real(i), args[0]->error_of(i)), args[0]->tie_of(i)};
      else if (op == ExprOp::bit_cast)
        n = bit_cast_lane(dtype, *args[0], i);
      else
        n = RealLane(op, computed, args, i, note.typed).run(ulps);
      if (argument && argument->value[at] < kTableEnd) n.e += Reach::both(note.absolute);
      out.value[at] = n.v;
      if (!n.e.none()) out.set_error(i, n.e, n.tie);
    }
  }
  for (int i = 0; (op == ExprOp::add || op == ExprOp::sub) && i < count; ++i)
    out.swallows |= is_swallowed(computed, out.real(i), args[0]->real(i), args[1]->real(i));
  overflow(computed, note.typed, out, count);
}

}  // namespace opfuse
