#include "codegen/activation_form.hpp"

namespace opfuse {
namespace {

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
  return std::nullopt;
}

std::set<TabledActivation> tabled_activations(const Region& region, const TargetInfo& target) {
  std::set<TabledActivation> found;
  if (target.is_cuda() || target.lanes_f32() != 16) return found;
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
