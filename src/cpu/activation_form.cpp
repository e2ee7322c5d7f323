#include "cpu/activation_form.hpp"

#include <cmath>
#include <numbers>

namespace opfuse {
namespace {

constexpr int kDeepestFactor = 2;  ///< of a product of three
constexpr int kDeepestPower = 4;   ///< of c x x x

bool is_one(const Expr& e) { return e.is_constant() && e.value() == 1; }

/// x, when `e` is 1 + exp(-x).
std::optional<Expr> argument_of_denominator(const Expr& e) {
  const auto z = exponent_of_logistic(e);
  if (!z || z->op() != ExprOp::neg) return std::nullopt;
  return z->args()[0];
}

/// x, when `e` is 1 / (1 + exp(-x)).
std::optional<Expr> argument_of_sigmoid(const Expr& e) {
  if (e.op() == ExprOp::reciprocal) return argument_of_denominator(e.args()[0]);
  if (e.op() != ExprOp::div || !is_one(e.args()[0])) return std::nullopt;
  return argument_of_denominator(e.args()[1]);
}

std::optional<Expr> argument_of_silu(const Expr& e) {
  if (e.op() != ExprOp::div && e.op() != ExprOp::mul) return std::nullopt;
  const Expr& a = e.args()[0];
  const Expr& b = e.args()[1];
  if (e.op() == ExprOp::div) {
    const auto x = argument_of_denominator(b);
    return x && a == *x ? x : std::nullopt;
  }
  for (const auto& [factor, other] : {std::pair{a, b}, std::pair{b, a}})
    if (const auto x = argument_of_sigmoid(other); x && factor == *x) return x;
  return std::nullopt;
}

bool is_f32(const Expr& e) { return !e.weak() && e.dtype() == DType::f32; }

/// c, when `e` is x * c or x / (1 / c).
std::optional<std::pair<Expr, double>> scaled(const Expr& e) {
  if (!is_f32(e) || (e.op() != ExprOp::mul && e.op() != ExprOp::div)) return std::nullopt;
  const Expr& a = e.args()[0];
  const Expr& b = e.args()[1];
  if (b.is_constant()) return std::pair{a, e.op() == ExprOp::mul ? b.value() : 1 / b.value()};
  if (a.is_constant() && e.op() == ExprOp::mul) return std::pair{b, a.value()};
  return std::nullopt;
}

bool is_near(double value, double wanted) { return std::fabs(value / wanted - 1) < 1e-6; }

/// As a constant of f16 or bf16 stands for it.
bool is_rounded(double value, double wanted) { return std::fabs(value / wanted - 1) < 0x1p-7; }

/// c x^n, as a product in any order.
struct Power {
  const Expr& x;
  int exponent = 0;
  double scale = 1;

  /// False where `e` has other factors.
  bool take(const Expr& e, int depth = kDeepestPower) {
    if (e == x) return ++exponent, true;
    if (e.op() == ExprOp::pow && e.args()[0] == x && e.args()[1].is_constant() && e.args()[1].value() == 3)
      return exponent += 3, true;
    if (depth == 0) return false;
    if (const auto part = scaled(e)) return scale *= part->second, take(part->first, depth - 1);
    return e.op() == ExprOp::mul && is_f32(e) && take(e.args()[0], depth - 1) && take(e.args()[1], depth - 1);
  }
};

/// x, when `e` is x + 0.044715 x^3.
std::optional<Expr> argument_of_cubic(const Expr& e) {
  if (e.op() != ExprOp::add || !is_f32(e)) return std::nullopt;
  for (const size_t side : {0u, 1u}) {
    Power power{e.args()[side]};
    if (power.take(e.args()[1 - side]) && power.exponent == 3 && is_near(power.scale, 0.044715)) return power.x;
  }
  return std::nullopt;
}

/// 1 + erf(x sqrt(1/2)), or 1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)).
std::optional<ActivationForm> normal_form(const Expr& e) {
  if (e.op() != ExprOp::add || !is_f32(e)) return std::nullopt;
  const Expr& function = is_one(e.args()[0]) ? e.args()[1] : e.args()[0];
  if (!(is_one(e.args()[0]) || is_one(e.args()[1])) || function.args().empty()) return std::nullopt;
  const auto inner = scaled(function.args()[0]);
  if (!inner) return std::nullopt;
  if (function.op() == ExprOp::erf && is_near(inner->second, std::sqrt(0.5)))
    return ActivationForm{TabledActivation::gelu, inner->first};
  if (function.op() == ExprOp::erf && is_rounded(inner->second, std::sqrt(0.5)))
    return ActivationForm{TabledActivation::gelu_rounded, inner->first, inner->second / std::sqrt(0.5)};
  if (function.op() != ExprOp::tanh || !is_near(inner->second, std::sqrt(2 / std::numbers::pi))) return std::nullopt;
  const auto x = argument_of_cubic(inner->first);
  return x ? std::optional(ActivationForm{TabledActivation::gelu_tanh, *x}) : std::nullopt;
}

/// The normal form that is a factor of `e`.
std::optional<ActivationForm> normal_factor(const Expr& e, int depth = kDeepestFactor) {
  if (const auto form = normal_form(e)) return form;
  if (depth == 0) return std::nullopt;
  if (const auto part = scaled(e)) return normal_factor(part->first, depth - 1);
  if (e.op() != ExprOp::mul || !is_f32(e)) return std::nullopt;
  const auto left = normal_factor(e.args()[0], depth - 1);
  return left ? left : normal_factor(e.args()[1], depth - 1);
}

/// How often each is a factor of a product; x itself may be one.
struct Factors {
  const Expr& x;
  int xs = 0, normals = 0;
  double scale = 1;

  /// False where `e` has others.
  bool take(const Expr& e, int depth = kDeepestFactor) {
    if (e == x) return ++xs, true;
    if (const auto form = normal_form(e)) return ++normals, form->x == x;
    if (depth == 0) return false;
    if (const auto part = scaled(e)) return scale *= part->second, take(part->first, depth - 1);
    return e.op() == ExprOp::mul && is_f32(e) && take(e.args()[0], depth - 1) && take(e.args()[1], depth - 1);
  }
};

std::optional<ActivationForm> gelu_form(const Expr& e) {
  if (e.op() != ExprOp::mul && e.op() != ExprOp::div) return std::nullopt;
  auto form = normal_factor(e);
  if (!form || !is_f32(form->x)) return std::nullopt;
  Factors factors{form->x};
  if (!factors.take(e) || factors.xs != 1 || factors.normals != 1 || factors.scale != 0.5) return std::nullopt;
  return form;
}

}  // namespace

std::optional<Expr> exponent_of_logistic(const Expr& e) {
  if (e.op() != ExprOp::add || e.weak() || e.dtype() != DType::f32) return std::nullopt;
  const Expr& x = e.args()[0];
  const Expr& y = e.args()[1];
  const Expr& power = is_one(x) ? y : x;
  if (!(is_one(x) || is_one(y)) || power.op() != ExprOp::exp || power.weak()) return std::nullopt;
  return power.args()[0];
}

std::optional<ActivationForm> activation_form(const Expr& e) {
  if (const auto x = argument_of_silu(e)) return ActivationForm{TabledActivation::silu, *x};
  return gelu_form(e);
}

std::set<TabledActivation> tabled_activations(const Region& region, const TargetInfo& target) {
  std::set<TabledActivation> found;
  if (!target.has("avx512dq") || target.lanes_f32() != 16) return found;  // tables fill a register
  const auto look = [&](const Expr& e) {
    if (const auto form = activation_form(e)) found.insert(form->activation);
  };
  for (const Stage& stage : region.stages) {
    for (const Reduction& r : stage.reductions) r.value.visit(look);
    for (const StageOutput& o : stage.outputs) o.value.visit(look);
  }
  return found;
}

}  // namespace opfuse
