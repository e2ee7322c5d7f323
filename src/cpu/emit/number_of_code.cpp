// A float that was rounded to a code of this group's own, and is a number again, as a pair of Q and DQ has it:
//
//     float(i32(u8(min(max(y, 0), 255))) - zero)     y, whole: min(max(y, 0), 255) - float(zero), 0 for NaN
//
// It stays in f32; otherwise it is converted to i32, cut off to a byte, widened and converted back.
#include "cpu/emit/emit_expr.hpp"
#include "tensor/number.hpp"

namespace opfuse::cpu {
namespace {

bool is_byte(DType dtype) { return dtype == DType::u8 || dtype == DType::i8; }

bool is_clamp(const Expr& e, ExprOp op, double end) {
  return e.op() == op && !e.weak() && e.dtype() == DType::f32 && e.args()[1].is_constant() &&
         e.args()[1].value() == end;
}

bool is_whole(const Expr& e) {
  if (e.op() == ExprOp::add) return is_whole(e.args()[0]) && is_whole(e.args()[1]);
  return e.op() == ExprOp::round_even || (e.op() == ExprOp::cast && !is_float(e.args()[0].dtype()));
}

/// A whole number between the ends of the codes.
bool is_code(const Expr& e, DType dtype) {
  return is_clamp(e, ExprOp::min, static_cast<double>(integer_max(dtype))) &&
         is_clamp(e.args()[0], ExprOp::max, static_cast<double>(integer_min(dtype))) && is_whole(e.args()[0].args()[0]);
}

}  // namespace

Value* ExprEmitter::number_of_code(const Expr& e) {
  const Expr& difference = e.args()[0];
  if (e.dtype() != DType::f32 || difference.op() != ExprOp::sub || difference.dtype() != DType::i32) return nullptr;
  const Expr &wide = difference.args()[0], &zero = difference.args()[1];
  if (wide.op() != ExprOp::cast || zero.op() != ExprOp::cast || !is_byte(zero.args()[0].dtype())) return nullptr;
  const Expr& code = wide.args()[0];
  if (code.op() != ExprOp::cast || !is_byte(code.dtype()) || !is_code(code.args()[0], code.dtype())) return nullptr;
  Value* x = emit(code.args()[0], DType::f32);
  Value* none = k_.zero(x->getType());  // of NaN, and -0 is 0
  if (integer_min(code.dtype()) == 0)
    x = k_.b.CreateSelect(k_.b.CreateFCmpOGT(x, none), x, none);
  else
    x = k_.b.CreateFAdd(k_.b.CreateSelect(k_.b.CreateFCmpUNO(x, x), none, x), none);
  Value* shift = emit_cast(k_, emit(zero, DType::i32), DType::i32, DType::f32);
  unify(k_, x, shift);
  return k_.b.CreateFSub(x, shift);
}

}  // namespace opfuse::cpu
