// The conversion to i32 rounds half to even itself. It comes behind the clamp, whose bounds are integers, so nothing
// overflows and the result is the same; NaN becomes the lower bound, which is the code 0 that a cast of NaN is.
//
// Four vectors are narrowed by instructions that saturate: to i16, plus the zero point there, to bytes. What is too
// small, or NaN, converts to the least i32 and ends at the lower bound; only the upper one is a minimum of its own.
// Narrowing works within 128 bits, so the words of the four come interleaved:
//
//   a0 b0 c0 d0 | a1 b1 c1 d1 | ..   ->   a0 a1 .. b0 b1 .. c0 c1 .. d0 d1 ..       four codes each
#include "cpu/emit/math/quantise.hpp"

#include <llvm/IR/IntrinsicsX86.h>

#include "tensor/number.hpp"

namespace opfuse::cpu {
namespace {

constexpr int kCurrentRounding = 4;  // of MXCSR: half to even

const Expr* constant_side(const Expr& e, ExprOp op) {
  return e.op() == op && e.dtype() == DType::f32 && e.args()[1].is_constant() ? &e.args()[1] : nullptr;
}

/// The instruction of the vectors' width: of 64, 32 and 16 bytes.
struct OfWidth {
  llvm::Intrinsic::ID wide, half, quarter;
  llvm::Intrinsic::ID at(const TargetInfo& target) const {
    return target.vector_bytes == 64 ? wide : target.vector_bytes == 32 ? half : quarter;
  }
};
constexpr OfWidth kToWords{llvm::Intrinsic::x86_avx512_packssdw_512, llvm::Intrinsic::x86_avx2_packssdw,
                           llvm::Intrinsic::x86_sse2_packssdw_128};
constexpr OfWidth kToUnsigned{llvm::Intrinsic::x86_avx512_packuswb_512, llvm::Intrinsic::x86_avx2_packuswb,
                              llvm::Intrinsic::x86_sse2_packuswb_128};
constexpr OfWidth kToSigned{llvm::Intrinsic::x86_avx512_packsswb_512, llvm::Intrinsic::x86_avx2_packsswb,
                            llvm::Intrinsic::x86_sse2_packsswb_128};

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
  if (e.op() != ExprOp::cast || (e.dtype() != DType::u8 && e.dtype() != DType::i8)) return std::nullopt;
  const Expr& sum = e.args()[0];
  const Expr* zero = constant_side(sum, ExprOp::add);
  if (!zero) return std::nullopt;
  const Expr& least = sum.args()[0];
  const Expr* high = constant_side(least, ExprOp::min);
  if (!high) return std::nullopt;
  const Expr& most = least.args()[0];
  const Expr* low = constant_side(most, ExprOp::max);
  if (!low || most.args()[0].op() != ExprOp::round_even) return std::nullopt;
  CodeForm form{most.args()[0].args()[0], e.dtype(), low->value(), high->value(), zero->value()};
  const bool whole = form.low + form.zero == static_cast<double>(integer_min(e.dtype())) &&
                     form.high + form.zero == static_cast<double>(integer_max(e.dtype()));
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

Value* emit_codes(Kernel& k, const std::array<Value*, kVectorsOfCodes>& x, const CodeForm& form) {
  auto& b = k.b;
  const int lanes = lanes_of(k.target), quarters = lanes / 4;
  std::array<Value*, kVectorsOfCodes> whole{};
  for (size_t i = 0; i < x.size(); ++i) {
    Value* high = llvm::ConstantFP::get(x[i]->getType(), form.high);
    whole[i] = rounded(k, b.CreateSelect(b.CreateFCmpOLT(high, x[i]), high, x[i]));  // x where it is NaN
  }
  const auto words = [&](Value* left, Value* right) -> Value* {
    Value* pair = b.CreateIntrinsic(kToWords.at(k.target), {}, {left, right});
    auto* zero = llvm::ConstantInt::getSigned(pair->getType(), static_cast<int64_t>(form.zero));
    return form.zero == 0 ? pair : b.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_sat, pair, zero);
  };
  const OfWidth& to_bytes = form.dtype == DType::u8 ? kToUnsigned : kToSigned;
  Value* codes = b.CreateIntrinsic(to_bytes.at(k.target), {}, {words(whole[0], whole[1]), words(whole[2], whole[3])});
  std::vector<int> order;
  for (int i = 0; i < lanes; ++i) order.push_back(i % quarters * 4 + i / quarters);
  Value* placed = b.CreateShuffleVector(b.CreateBitCast(codes, k.lanes(b.getInt32Ty(), lanes)), order);
  return b.CreateBitCast(placed, k.lanes(b.getInt8Ty(), 4 * lanes));
}

}  // namespace opfuse::cpu
