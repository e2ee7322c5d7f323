// d = 1 + 2^n m (exp_parts.hpp), where n stays within the exponents of normal numbers and is added to the bits;
// 1/d = (2 - d s) s with s = 1/d to 14 bits, which one instruction gives, instead of a division of 16 cycles and more.
#include "codegen/cpu/logistic.hpp"

#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>

#include "codegen/cpu/exp_parts.hpp"

namespace opfuse::cpu {
namespace {

constexpr double kFar = 87.33;  // e^kFar < 2^126

Real reciprocal_of_normal(Real d) {
  auto& b = d.k->b;
  Real s = d.with(b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_rcp14_ps_512, {},
                                    {d.v, llvm::Constant::getNullValue(d.v->getType()), b.getInt16(-1)}));
  return fma(-d, s, 2.0) * s;
}

bool is_one(const Expr& e) { return e.is_constant() && e.value() == 1; }

}  // namespace

std::optional<Expr> exponent_of_logistic(const Expr& e) {
  if (e.op() != ExprOp::add || e.weak() || e.dtype() != DType::f32) return std::nullopt;
  const Expr& x = e.args()[0];
  const Expr& y = e.args()[1];
  const Expr& power = is_one(x) ? y : x;
  if (!(is_one(x) || is_one(y)) || power.op() != ExprOp::exp || power.weak()) return std::nullopt;
  return power.args()[0];
}

bool has_logistic(Kernel& k, Value* z) { return width_of(z) == 16 && k.target.vector_bytes == 64; }

bool is_logistic_numerator(Value* a, Value* z) {
  auto* c = llvm::dyn_cast<llvm::ConstantFP>(a);
  return (c && c->isExactlyValue(1.0)) ||
         llvm::PatternMatch::match(z, llvm::PatternMatch::m_FNeg(llvm::PatternMatch::m_Specific(a)));
}

Value* emit_logistic(Kernel& k, Value* a, Value* z) {
  Real x{&k, z};
  Value* far = x > x.of(kFar);
  const ExpParts parts = split_exp(clamp(x, -kFar, kFar));
  Real r = reciprocal_of_normal(add_exponent(parts.m, parts.n) + 1.0);
  r = choose(far, x.of(0), r);
  if (auto* c = llvm::dyn_cast<llvm::ConstantFP>(a); c && c->isExactlyValue(1.0)) return r.v;
  return k.b.CreateFMul(k.splat(a, 16), r.v);
}

}  // namespace opfuse::cpu
