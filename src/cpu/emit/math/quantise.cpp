// The conversion to i32 rounds half to even itself. It comes behind the clamp, whose bounds are integers, so nothing
// overflows and the result is the same; NaN becomes the lower bound, which is the code 0 that a cast of NaN is.
#include "cpu/emit/math/quantise.hpp"

#include <llvm/IR/IntrinsicsX86.h>

namespace opfuse::cpu {
namespace {

constexpr int kCurrentRounding = 4;  // of MXCSR: half to even

const Expr* constant_side(const Expr& e, ExprOp op) {
  return e.op() == op && e.dtype() == DType::f32 && e.args()[1].is_constant() ? &e.args()[1] : nullptr;
}

Value* rounded(Kernel& k, Value* x) {
  auto& b = k.b;
  const int width = width_of(x);
  if (width == 8) return b.CreateIntrinsic(llvm::Intrinsic::x86_avx_cvt_ps2dq_256, {}, {x});
  if (width == 4) return b.CreateIntrinsic(llvm::Intrinsic::x86_sse2_cvtps2dq, {}, {x});
  Value* unused = k.zero(k.lanes(b.getInt32Ty(), width));
  return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_cvtps2dq_512, {},
                           {x, unused, b.getInt16(0xFFFF), b.getInt32(kCurrentRounding)});
}

}  // namespace

std::optional<CodeForm> code_form(const Expr& e) {
  if (e.op() != ExprOp::cast || e.dtype() != DType::u8) return std::nullopt;
  const Expr& sum = e.args()[0];
  const Expr* zero = constant_side(sum, ExprOp::add);
  if (!zero) return std::nullopt;
  const Expr& least = sum.args()[0];
  const Expr* high = constant_side(least, ExprOp::min);
  if (!high) return std::nullopt;
  const Expr& most = least.args()[0];
  const Expr* low = constant_side(most, ExprOp::max);
  if (!low || most.args()[0].op() != ExprOp::round_even) return std::nullopt;
  CodeForm form{most.args()[0].args()[0], low->value(), high->value(), zero->value()};
  const bool whole = form.low + form.zero == 0 && form.high + form.zero == 255;
  return whole && form.x.dtype() == DType::f32 ? std::optional(form) : std::nullopt;
}

bool has_code_instructions(Kernel& k, Value* x) { return width_of(x) == lanes_of(k.target); }

Value* emit_code(Kernel& k, Value* x, const CodeForm& form) {
  auto& b = k.b;
  Value* low = llvm::ConstantFP::get(x->getType(), form.low);
  Value* high = llvm::ConstantFP::get(x->getType(), form.high);
  x = b.CreateSelect(b.CreateFCmpOGT(x, low), x, low);
  x = b.CreateSelect(b.CreateFCmpOLT(x, high), x, high);
  Value* code = rounded(k, x);
  const auto zero = static_cast<uint64_t>(static_cast<int64_t>(form.zero));
  if (zero) code = b.CreateAdd(code, llvm::ConstantInt::get(code->getType(), zero));
  return b.CreateTrunc(code, k.lanes(b.getInt8Ty(), width_of(x)));
}

}  // namespace opfuse::cpu
