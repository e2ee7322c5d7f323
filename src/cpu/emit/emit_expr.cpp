// One case per ExprOp; evaluate_op (expr/) is the definition these follow. Integer division by zero
// yields 0 instead of a trap. f16 and bf16 are computed in float and rounded when stored.
#include "cpu/emit/emit_expr.hpp"

#include <llvm/IR/Intrinsics.h>

#include <cmath>

#include "base/fail.hpp"
#include "cpu/activation_form.hpp"
#include "cpu/emit/math/activation_tables.hpp"
#include "cpu/emit/math/division.hpp"
#include "cpu/emit/math/float_to_int.hpp"
#include "cpu/emit/math/half_float.hpp"
#include "cpu/emit/math/logistic.hpp"
#include "cpu/emit/math/quantise.hpp"
#include "cpu/emit/math/vector_math.hpp"
#include "cpu/functions.hpp"

namespace opfuse::cpu {

using llvm::Type;

namespace {

bool is_real(const Value* v) { return v->getType()->isFPOrFPVectorTy(); }
bool unsigned_type(DType d) { return !is_signed(d) || d == DType::boolean; }

bool is_number(const Expr& e) { return e.is_constant() && !(is_float(e.dtype()) && std::isnan(e.value())); }

DType operand_dtype(const Expr& x, const Expr& y) {
  if (!x.weak()) return x.dtype();
  return y.dtype();
}

/// Integers of less than a byte keep their low bits, extended to the byte that holds them.
Value* cut_off(Kernel& k, Value* x, DType to) {
  if (!is_integer(to) || bit_size(to) >= 8) return x;
  const auto bits = static_cast<uint64_t>(bit_size(to));
  if (is_signed(to)) return k.b.CreateAShr(k.b.CreateShl(x, 8 - bits), 8 - bits);
  return k.b.CreateAnd(x, (uint64_t{1} << bits) - 1);
}

}  // namespace

void unify(Kernel& k, Value*& x, Value*& y) {
  const int width = std::max(width_of(x), width_of(y));
  x = k.splat(x, width);
  y = k.splat(y, width);
}

Value* emit_extremum(Kernel& k, bool maximum, Value* x, Value* y, bool y_is_number) {
  unify(k, x, y);
  auto& b = k.b;
  // (y > x) ? y : x is one maxps and yields x when x is NaN
  Value* best = b.CreateSelect(maximum ? b.CreateFCmpOGT(y, x) : b.CreateFCmpOLT(y, x), y, x);
  return y_is_number ? best : b.CreateSelect(b.CreateFCmpUNO(y, y), y, best);
}

Value* emit_cast(Kernel& k, Value* x, DType from, DType to) {
  auto& b = k.b;
  Type* type = k.lanes(k.value_type(to), width_of(x));
  if (x->getType() == type && is_float(from) == is_float(to) && (from == DType::boolean) == (to == DType::boolean)) {
    if (is_small_float(to)) return from == to ? x : widen_half(k, narrow_half(k, x, to), to);
    return is_float(to) || from == to ? x : cut_off(k, x, to);
  }
  if (to == DType::boolean)
    return is_float(from) ? b.CreateFCmpUNE(x, k.zero(x->getType())) : b.CreateICmpNE(x, k.zero(x->getType()));
  if (is_float(from)) {
    if (is_small_float(to))
      return widen_half(k, narrow_half(k, from == DType::f64 ? b.CreateFPTrunc(x, type) : x, to), to);
    if (is_float(to)) return to == DType::f64 ? b.CreateFPExt(x, type) : b.CreateFPTrunc(x, type);
    return emit_float_to_int(k, x, to);
  }
  if (is_float(to)) return unsigned_type(from) ? b.CreateUIToFP(x, type) : b.CreateSIToFP(x, type);
  return cut_off(k, unsigned_type(from) ? b.CreateZExtOrTrunc(x, type) : b.CreateSExtOrTrunc(x, type), to);
}

/// Widened numbers as memory holds them, seen as another type and widened again.
static Value* emit_bit_cast(Kernel& k, Value* x, DType from, DType to) {
  Value* stored = is_small_float(from) ? narrow_half(k, x, from) : x;
  Value* seen = k.b.CreateBitCast(stored, k.lanes(k.memory_type(to), width_of(x)));
  return is_small_float(to) ? widen_half(k, seen, to) : is_float(to) ? seen : cut_off(k, seen, to);
}

Value* ExprEmitter::emit(const Expr& e, DType dtype) {
  if (e.weak()) return compute(e, dtype);
  auto [it, fresh] = memo_.try_emplace(e.node(), nullptr);
  if (fresh) {
    Value* value = compute(e, e.dtype());
    it = memo_.insert_or_assign(e.node(), value).first;
  }
  return e.dtype() == dtype ? it->second : emit_cast(k_, it->second, e.dtype(), dtype);
}

Value* ExprEmitter::constant(const Expr& e, DType dtype) {
  Type* type = k_.value_type(dtype);
  const bool real = e.weak() || is_float(e.dtype());
  if (is_float(dtype)) return llvm::ConstantFP::get(type, real ? e.value() : static_cast<double>(e.integer_value()));
  const int64_t v = real ? static_cast<int64_t>(e.value()) : e.integer_value();
  return llvm::ConstantInt::get(type, static_cast<uint64_t>(v), true);
}

Value* ExprEmitter::compute(const Expr& e, DType dtype) {
  if (const auto number = number_ && e.dtype() == DType::i64 ? number_(e) : std::nullopt) return k_.i64(*number);
  switch (e.op()) {
    case ExprOp::constant:
      return constant(e, dtype);
    case ExprOp::extent:
      return k_.dim(e.dim());
    case ExprOp::read:
    case ExprOp::in_bounds:
    case ExprOp::coord:
    case ExprOp::result:
      return leaf_(e);
    case ExprOp::cast:
      if (const auto form = code_form(e))
        if (Value* x = emit(form->x); has_code_instructions(k_, x)) return emit_code(k_, x, *form);
      if (Value* number = number_of_code(e)) return number;
      return emit_cast(k_, emit(e.args()[0]), e.args()[0].dtype(), e.dtype());
    case ExprOp::bit_cast:
      return emit_bit_cast(k_, emit(e.args()[0]), e.args()[0].dtype(), e.dtype());
    case ExprOp::select:
      return select(e, dtype);
    default:
      break;
  }
  if (arity(e.op()) == 2) return binary(e, dtype);
  const Expr& x = e.args()[0];
  const DType type = x.weak() ? dtype : x.dtype();
  if (e.op() == ExprOp::exp && type == DType::f32 && below_zero_ && below_zero_(x))
    return emit_exp_below_zero(k_, emit(x, type));
  return unary(e.op(), type, emit(x, type));
}

Value* ExprEmitter::unary(ExprOp op, DType dtype, Value* x) {
  auto& b = k_.b;
  const bool real = is_real(x);
  Value* zero = k_.zero(x->getType());
  const auto one = [&] {
    return real ? llvm::ConstantFP::get(x->getType(), 1) : llvm::ConstantInt::get(x->getType(), 1);
  };
  switch (op) {
    case ExprOp::neg:
      return real ? b.CreateFNeg(x) : b.CreateNeg(x);
    case ExprOp::abs:
      if (real) return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
      return unsigned_type(dtype) ? x : b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b.getFalse());
    case ExprOp::sign:
      if (real) {
        Value* up = b.CreateUIToFP(b.CreateFCmpOGT(x, zero), x->getType());
        Value* down = b.CreateUIToFP(b.CreateFCmpOLT(x, zero), x->getType());
        return b.CreateSelect(b.CreateFCmpUNO(x, x), x, b.CreateFSub(up, down));
      }
      if (unsigned_type(dtype)) return b.CreateZExt(b.CreateICmpNE(x, zero), x->getType());
      return b.CreateSelect(b.CreateICmpSLT(x, zero), llvm::Constant::getAllOnesValue(x->getType()),
                            b.CreateZExt(b.CreateICmpSGT(x, zero), x->getType()));
    case ExprOp::is_nan:
      return real ? b.CreateFCmpUNO(x, x) : b.CreateICmpNE(x, x);
    case ExprOp::is_inf:
      if (!real) return b.CreateICmpNE(x, x);
      return b.CreateFCmpOEQ(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x),
                             llvm::ConstantFP::getInfinity(x->getType()));
    case ExprOp::logical_not:
    case ExprOp::bit_not:
      return b.CreateNot(x);
    case ExprOp::floor:
    case ExprOp::ceil:
    case ExprOp::round_even:
      if (!real) return x;
      break;
    case ExprOp::reciprocal:
      if (!real) return integer_binary(ExprOp::div, dtype, one(), x);
      break;
    default:
      break;
  }
  if (!real) {  // real functions of integers: through double
    Value* wide = emit_cast(k_, x, dtype, DType::f64);
    return emit_cast(k_, emit_function(k_, op, wide, jumps_), DType::f64, dtype);
  }
  if (!has_function(op, dtype)) throw fail(E::codegen_failed, "{} of {} is not generated", name_of(op), name_of(dtype));
  return emit_function(k_, op, x, jumps_);
}

Value* ExprEmitter::compare(ExprOp op, DType dtype, Value* x, Value* y) {
  auto& b = k_.b;
  unify(k_, x, y);
  if (is_real(x)) {
    switch (op) {
      case ExprOp::lt:
        return b.CreateFCmpOLT(x, y);
      case ExprOp::le:
        return b.CreateFCmpOLE(x, y);
      case ExprOp::gt:
        return b.CreateFCmpOGT(x, y);
      case ExprOp::ge:
        return b.CreateFCmpOGE(x, y);
      case ExprOp::eq:
        return b.CreateFCmpOEQ(x, y);
      default:
        return b.CreateFCmpUNE(x, y);
    }
  }
  const bool u = unsigned_type(dtype);
  switch (op) {
    case ExprOp::lt:
      return u ? b.CreateICmpULT(x, y) : b.CreateICmpSLT(x, y);
    case ExprOp::le:
      return u ? b.CreateICmpULE(x, y) : b.CreateICmpSLE(x, y);
    case ExprOp::gt:
      return u ? b.CreateICmpUGT(x, y) : b.CreateICmpSGT(x, y);
    case ExprOp::ge:
      return u ? b.CreateICmpUGE(x, y) : b.CreateICmpSGE(x, y);
    case ExprOp::eq:
      return b.CreateICmpEQ(x, y);
    default:
      return b.CreateICmpNE(x, y);
  }
}

/// Nothing where the launch has no tables for it.
Value* ExprEmitter::activation_by_table(const Expr& e) {
  if (!k_.spec.schedule.get(kActivationTables, 0)) return nullptr;
  const auto form = activation_form(e);
  if (!form) return nullptr;
  Real x{&k_, emit(form->x, DType::f32)};
  return has_activation_tables(x) ? emit_by_table(*form, x).v : nullptr;
}

Value* ExprEmitter::binary(const Expr& e, DType dtype) {
  if (Value* activation = activation_by_table(e)) return activation;
  const Expr& left = e.args()[0];
  const Expr& right = e.args()[1];
  const ExprOp op = e.op();
  const bool comparison = op >= ExprOp::lt && op <= ExprOp::ne;
  DType type = left.weak() && right.weak() ? (comparison ? DType::f64 : dtype) : operand_dtype(left, right);
  Value* x = emit(left, type);
  // x^2 and x^0.5 need no logarithm
  if (op == ExprOp::pow && is_real(x) && right.is_constant() && (right.weak() || is_float(right.dtype()))) {
    if (right.value() == 2) return k_.b.CreateFMul(x, x);
    if (right.value() == 3) return k_.b.CreateFMul(k_.b.CreateFMul(x, x), x);
    if (right.value() == 1) return x;
    if (right.value() == -1) return emit_function(k_, ExprOp::reciprocal, x);
  }
  if (op == ExprOp::div && type == DType::f32)
    if (const auto exponent = exponent_of_logistic(right))
      if (Value* z = emit(*exponent, type); has_logistic(k_, z) && is_logistic_numerator(x, z))
        return emit_logistic(k_, x, z);
  Value* y = emit(right, type);
  if (comparison) return compare(op, type, x, y);
  if (op == ExprOp::min || op == ExprOp::max) {
    if (is_real(x)) {
      if (left.is_constant() && !right.is_constant())
        return emit_extremum(k_, op == ExprOp::max, y, x, is_number(left));
      return emit_extremum(k_, op == ExprOp::max, x, y, is_number(right));
    }
    unify(k_, x, y);
    return k_.b.CreateSelect(compare(op == ExprOp::max ? ExprOp::gt : ExprOp::lt, type, x, y), x, y);
  }
  unify(k_, x, y);
  return is_real(x) ? real_binary(op, x, y) : integer_binary(op, type, x, y);
}

Value* ExprEmitter::real_binary(ExprOp op, Value* x, Value* y) {
  auto& b = k_.b;
  switch (op) {
    case ExprOp::add:
      return b.CreateFAdd(x, y);
    case ExprOp::sub:
      return b.CreateFSub(x, y);
    case ExprOp::mul:
      return b.CreateFMul(x, y);
    case ExprOp::div:
      return emit_quotient(k_, x, y);
    case ExprOp::pow:
      return emit_pow(k_, x, y);
    case ExprOp::fmod:
      return emit_fmod(k_, x, y, jumps_);
    case ExprOp::mod: {  // sign of the divisor
      Value* r = emit_fmod(k_, x, y, jumps_);
      Value* zero = k_.zero(r->getType());
      Value* wrong =
          b.CreateAnd(b.CreateFCmpUNE(r, zero), b.CreateXor(b.CreateFCmpOLT(r, zero), b.CreateFCmpOLT(y, zero)));
      Value* signed_zero = b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, zero, y);
      return b.CreateSelect(b.CreateFCmpOEQ(r, zero), signed_zero, b.CreateSelect(wrong, b.CreateFAdd(r, y), r));
    }
    default:
      throw fail(E::codegen_failed, "{} of real numbers is not generated", name_of(op));
  }
}

/// By squaring, one step per bit of the exponent; negative exponents are those of 1 / x, truncated.
Value* ExprEmitter::integer_pow(bool is_unsigned, Value* x, Value* y) {
  auto& b = k_.b;
  Type* type = x->getType();
  Value* zero = k_.zero(type);
  Value* one = llvm::ConstantInt::get(type, 1);
  Value* result = one;
  Value* base = x;
  for (unsigned bit = 0; bit < type->getScalarSizeInBits(); ++bit) {
    Value* set = b.CreateICmpNE(b.CreateAnd(b.CreateLShr(y, bit), one), zero);
    result = b.CreateSelect(set, b.CreateMul(result, base), result);
    base = b.CreateMul(base, base);
  }
  if (is_unsigned) return result;
  Value* odd = b.CreateICmpNE(b.CreateAnd(y, one), zero);
  Value* minus = llvm::Constant::getAllOnesValue(type);
  Value* inverse = b.CreateSelect(b.CreateICmpEQ(x, one), one, zero);
  inverse = b.CreateSelect(b.CreateICmpEQ(x, minus), b.CreateSelect(odd, minus, one), inverse);
  return b.CreateSelect(b.CreateICmpSLT(y, zero), inverse, result);
}

Value* ExprEmitter::integer_binary(ExprOp op, DType dtype, Value* x, Value* y) {
  auto& b = k_.b;
  const bool u = unsigned_type(dtype);
  Type* type = x->getType();
  Value* zero = k_.zero(type);
  switch (op) {
    case ExprOp::add:
      return b.CreateAdd(x, y);
    case ExprOp::sub:
      return b.CreateSub(x, y);
    case ExprOp::mul:
      return b.CreateMul(x, y);
    case ExprOp::logical_and:
    case ExprOp::bit_and:
      return b.CreateAnd(x, y);
    case ExprOp::logical_or:
    case ExprOp::bit_or:
      return b.CreateOr(x, y);
    case ExprOp::logical_xor:
    case ExprOp::bit_xor:
      return b.CreateXor(x, y);
    case ExprOp::shift_left:
    case ExprOp::shift_right: {
      const unsigned bits = type->getScalarSizeInBits();
      Value* in_range = b.CreateICmpULT(y, llvm::ConstantInt::get(type, bits));
      Value* by = b.CreateSelect(in_range, y, llvm::ConstantInt::get(type, bits - 1));
      if (op == ExprOp::shift_right && !u) return b.CreateAShr(x, by);
      return b.CreateSelect(in_range, op == ExprOp::shift_left ? b.CreateShl(x, by) : b.CreateLShr(x, by), zero);
    }
    case ExprOp::pow:
      return integer_pow(u, x, y);
    default:
      break;
  }
  // division: a zero divisor gives 0, -1 cannot overflow
  Value* none = b.CreateICmpEQ(y, zero);
  Value* minus = u ? nullptr : b.CreateICmpEQ(y, llvm::Constant::getAllOnesValue(type));
  Value* replaced = u ? none : b.CreateOr(none, minus);
  Value* divisor = b.CreateSelect(replaced, llvm::ConstantInt::get(type, 1), y);
  Value* q = u ? b.CreateUDiv(x, divisor) : b.CreateSDiv(x, divisor);
  if (op == ExprOp::div) {
    if (minus) q = b.CreateSelect(minus, b.CreateNeg(x), q);
    return b.CreateSelect(none, zero, q);
  }
  Value* r = b.CreateSub(x, b.CreateMul(q, divisor));
  if (op == ExprOp::mod && !u) {
    Value* wrong = b.CreateAnd(b.CreateICmpNE(r, zero), b.CreateICmpSLT(b.CreateXor(r, divisor), zero));
    r = b.CreateSelect(wrong, b.CreateAdd(r, divisor), r);
  }
  if (op != ExprOp::mod && op != ExprOp::fmod)
    throw fail(E::codegen_failed, "{} of {} is not generated", name_of(op), name_of(dtype));
  return b.CreateSelect(replaced, zero, r);
}

}  // namespace opfuse::cpu
