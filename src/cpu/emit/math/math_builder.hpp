// Operators on IR values, so that formulas read as formulas. All values of one Real have one type
// (float or double, scalar or vector); integers are i32 or i64 of the same lane count.
#pragma once

#include <llvm/IR/Intrinsics.h>

#include "cpu/emit/kernel.hpp"

namespace opfuse::cpu {

struct Real {
  Kernel* k = nullptr;
  Value* v = nullptr;

  bool is_double() const { return v->getType()->getScalarType()->isDoubleTy(); }
  Real of(double c) const { return {k, llvm::ConstantFP::get(v->getType(), c)}; }
  Real with(Value* value) const { return {k, value}; }
  Value* integer(int64_t c) const { return llvm::ConstantInt::getSigned(integer_type(), c); }
  llvm::Type* integer_type() const {
    llvm::Type* scalar = is_double() ? k->b.getInt64Ty() : static_cast<llvm::Type*>(k->b.getInt32Ty());
    return k->lanes(scalar, width_of(v));
  }
  Value* bits() const { return k->b.CreateBitCast(v, integer_type()); }
  Real from_bits(Value* i) const { return with(k->b.CreateBitCast(i, v->getType())); }
};

inline Real operator+(Real a, Real b) { return a.with(a.k->b.CreateFAdd(a.v, b.v)); }
inline Real operator-(Real a, Real b) { return a.with(a.k->b.CreateFSub(a.v, b.v)); }
inline Real operator*(Real a, Real b) { return a.with(a.k->b.CreateFMul(a.v, b.v)); }
inline Real operator/(Real a, Real b) { return a.with(a.k->b.CreateFDiv(a.v, b.v)); }
inline Real operator+(Real a, double c) { return a + a.of(c); }
inline Real operator-(Real a, double c) { return a - a.of(c); }
inline Real operator*(Real a, double c) { return a * a.of(c); }
inline Real operator-(Real a) { return a.with(a.k->b.CreateFNeg(a.v)); }
inline Value* operator<(Real a, Real b) { return a.k->b.CreateFCmpOLT(a.v, b.v); }
inline Value* operator>(Real a, Real b) { return a.k->b.CreateFCmpOGT(a.v, b.v); }
inline Value* equal(Real a, Real b) { return a.k->b.CreateFCmpOEQ(a.v, b.v); }
inline Value* is_nan(Real a) { return a.k->b.CreateFCmpUNO(a.v, a.v); }
inline Real choose(Value* c, Real a, Real b) { return a.with(a.k->b.CreateSelect(c, a.v, b.v)); }
inline Real fma(Real a, Real b, Real c) { return a.with(a.k->fma(a.v, b.v, c.v)); }
inline Real fma(Real a, Real b, double c) { return fma(a, b, a.of(c)); }
/// Comparisons leave NaN as it is.
inline Real clamp(Real x, double low, double high) {
  x = choose(x < x.of(low), x.of(low), x);
  return choose(x > x.of(high), x.of(high), x);
}
inline Real magnitude(Real a) { return a.with(a.k->b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a.v)); }
inline Real root(Real a) { return a.with(a.k->b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a.v)); }
inline Real copy_sign(Real a, Real s) {
  return a.with(a.k->b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, a.v, s.v));
}
/// ((start x + c[0]) x + c[1]) ...
inline Real horner(Real x, Real start, std::initializer_list<double> c) {
  for (double term : c) start = fma(start, x, term);
  return start;
}
/// c[0] x^n + c[1] x^(n-1) + ... + c[n]
inline Real horner(Real x, std::initializer_list<double> c) {
  auto it = c.begin();
  Real sum = x.of(*it++);
  for (; it != c.end(); ++it) sum = fma(sum, x, *it);
  return sum;
}

}  // namespace opfuse::cpu
