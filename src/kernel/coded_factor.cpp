#include "kernel/coded_factor.hpp"

#include "region/dependence.hpp"

namespace opfuse {
namespace {

bool is_byte(const Expr& e) { return !e.weak() && (e.dtype() == DType::u8 || e.dtype() == DType::i8); }

/// The byte, where `e` is one that was widened.
std::optional<Expr> widened(const Expr& e, DType to) {
  if (e.op() != ExprOp::cast || e.dtype() != to || !is_byte(e.args()[0])) return std::nullopt;
  return e.args()[0];
}

bool is_zero_point(const Expr& e) {
  if (e.is_constant() && !e.weak()) return e.integer_value() >= -128 && e.integer_value() <= 255;
  return widened(e, DType::i32).has_value();
}

bool is_number(const Stage& stage, const Expr& e) {
  bool computed = false;
  e.visit([&](const Expr& x) { computed |= x.op() == ExprOp::result || x.op() == ExprOp::extent; });
  return !computed && axes_of(stage, e).empty();
}

}  // namespace

std::optional<CodedFactor> coded_factor(const Stage& stage, const Expr& e) {
  if (e.op() != ExprOp::mul || e.dtype() != DType::f32) return std::nullopt;
  const Expr &whole = e.args()[0], &scale = e.args()[1];
  if (whole.op() != ExprOp::cast || scale.weak() || scale.dtype() != DType::f32 || !is_number(stage, scale))
    return std::nullopt;
  const Expr& i32 = whole.args()[0];
  if (const auto code = widened(whole, DType::f32)) return CodedFactor{*code, {}, scale};
  if (const auto code = widened(i32, DType::i32)) return CodedFactor{*code, {}, scale};
  if (i32.op() != ExprOp::sub) return std::nullopt;
  const auto code = widened(i32.args()[0], DType::i32);
  const Expr& zero = i32.args()[1];
  if (!code || !is_zero_point(zero) || !is_number(stage, zero)) return std::nullopt;
  return CodedFactor{*code, zero, scale};
}

}  // namespace opfuse
