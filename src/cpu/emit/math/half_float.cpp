// Numbers of 16 bits in registers are float. bf16: the upper half of a float's bits. f16: by F16C where there is any,
// in integers elsewhere.
#include "cpu/emit/math/half_float.hpp"

#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>

#include <cmath>

#include "cpu/emit/math/byte_float.hpp"
#include "tensor/tf32.hpp"

namespace opfuse::cpu {
namespace {

constexpr uint32_t kSign = 0x80000000, kExponent = 0x7F800000;

/// F16C: every processor with AVX2 has it.
bool converts_f16(const Kernel& k) { return k.target.vector_bytes >= 32; }

/// The 16 bits that widen_half made x of; null: x is something else.
Value* widened_bits(Value* x, llvm::Type* half, DType dtype) {
  using namespace llvm::PatternMatch;
  Value* bits = nullptr;
  const bool is = dtype == DType::f16 ? match(x, m_FPExt(m_BitCast(m_Value(bits))))
                                      : match(x, m_BitCast(m_Shl(m_ZExt(m_Value(bits)), m_SpecificInt(16))));
  return is && bits->getType() == half ? bits : nullptr;
}

/// By the instruction; null: so few lanes have none.
Value* rounded_bf16(Kernel& k, Value* x) {
  const int w = width_of(x);
  if (w == 16) return k.b.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_512, {}, {x});
  if (w == 8) return k.b.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_256, {}, {x});
  return nullptr;
}

/// By the instruction, NaN apart; null: so few lanes have none.
Value* rounded_f16(Kernel& k, Value* x) {
  auto& b = k.b;
  constexpr int kNearestEven = 0;
  const int w = width_of(x);
  if (w == 16 && k.target.vector_bytes >= 64)
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_vcvtps2ph_512, {},
                             {x, b.getInt32(kNearestEven), k.zero(k.lanes(b.getInt16Ty(), w)), b.getInt16(0xFFFF)});
  if (w == 8 && converts_f16(k))
    return b.CreateIntrinsic(llvm::Intrinsic::x86_vcvtps2ph_256, {}, {x, b.getInt32(kNearestEven)});
  return nullptr;
}

}  // namespace

Value* widen_half(Kernel& k, Value* bits, DType dtype) {
  if (byte_size(dtype) == 1) return widen_byte(k, bits, dtype);
  auto& b = k.b;
  const int w = width_of(bits);
  llvm::Type* real = k.lanes(b.getFloatTy(), w);
  llvm::Type* word = k.lanes(b.getInt32Ty(), w);
  Value* x = b.CreateZExt(bits, word);
  if (dtype == kTf32) return b.CreateBitCast(bits, real);
  if (dtype == DType::bf16) return b.CreateBitCast(b.CreateShl(x, 16), real);
  if (converts_f16(k)) return b.CreateFPExt(b.CreateBitCast(bits, k.lanes(b.getHalfTy(), w)), real);
  // exponent and mantissa moved into a float's, rescaled by 2^112 (denormals come out right)
  Value* magnitude = b.CreateShl(b.CreateAnd(x, 0x7FFF), 13);
  Value* scaled = b.CreateFMul(b.CreateBitCast(magnitude, real), llvm::ConstantFP::get(real, std::ldexp(1.0, 112)));
  Value* special = b.CreateICmpUGE(magnitude, llvm::ConstantInt::get(word, 0x0F800000));
  Value* value = b.CreateSelect(special, b.CreateOr(magnitude, 0x7F800000), b.CreateBitCast(scaled, word));
  return b.CreateBitCast(b.CreateOr(value, b.CreateShl(b.CreateAnd(x, 0x8000), 16)), real);
}

Value* narrow_pair(Kernel& k, Value* low, Value* high) {
  Value* both = k.b.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_cvtne2ps2bf16_512, {}, {high, low});
  return k.b.CreateBitCast(both, k.lanes(k.b.getInt16Ty(), 2 * width_of(low)));
}

Value* narrow_half(Kernel& k, Value* x, DType dtype) {
  if (byte_size(dtype) == 1) return narrow_byte(k, x, dtype);
  auto& b = k.b;
  const int w = width_of(x);
  llvm::Type* word = k.lanes(b.getInt32Ty(), w);
  llvm::Type* half = k.lanes(b.getInt16Ty(), w);
  if (Value* known = dtype == kTf32 ? nullptr : widened_bits(x, half, dtype)) return known;
  if (dtype == DType::bf16) {
    Value* rounded = k.rounds_halves ? rounded_bf16(k, x) : nullptr;
    if (rounded) return b.CreateBitCast(rounded, half);
  }
  const auto c = [&](uint32_t value) { return llvm::ConstantInt::get(word, value); };
  Value* bits = b.CreateBitCast(x, word);
  Value* nan = b.CreateFCmpUNO(x, x);
  if (dtype == kTf32)
    return b.CreateAnd(b.CreateSelect(nan, b.CreateOr(bits, c(0x400000)), b.CreateAdd(bits, c(0x1000))), c(0xFFFFE000));
  if (dtype == DType::bf16) {
    if (k.rounds_halves) {  // as the instruction does
      Value* small = b.CreateICmpEQ(b.CreateAnd(bits, kExponent), c(0));
      bits = b.CreateSelect(small, b.CreateAnd(bits, kSign), bits);
    }
    Value* lowest = b.CreateAnd(b.CreateLShr(bits, 16), 1);
    Value* up = b.CreateLShr(b.CreateAdd(bits, b.CreateAdd(lowest, c(0x7FFF))), 16);
    Value* quiet = b.CreateOr(b.CreateLShr(bits, 16), 0x40);
    return b.CreateTrunc(b.CreateSelect(nan, quiet, up), half);
  }
  Value* sign = b.CreateAnd(b.CreateLShr(bits, 16), 0x8000);
  if (Value* rounded = rounded_f16(k, x))
    return b.CreateSelect(nan, b.CreateTrunc(b.CreateOr(sign, 0x7E00), half), rounded);
  Value* a = b.CreateAnd(bits, 0x7FFFFFFF);
  Value* lowest = b.CreateAnd(b.CreateLShr(a, 13), 1);
  Value* normal = b.CreateLShr(b.CreateAdd(a, b.CreateAdd(lowest, c(0xC8000FFF))), 13);  // rebias by -112
  // below 2^-14: adding 0.5 aligns the mantissa so that the sum's low bits are the rounded denormal
  Value* sum = b.CreateFAdd(b.CreateBitCast(a, x->getType()), llvm::ConstantFP::get(x->getType(), 0.5));
  Value* denormal = b.CreateSub(b.CreateBitCast(sum, word), c(0x3F000000));
  Value* y = b.CreateSelect(b.CreateICmpULT(a, c(0x38800000)), denormal, normal);
  y = b.CreateSelect(b.CreateICmpUGE(a, c(0x477FF000)), c(0x7C00), y);
  y = b.CreateSelect(nan, c(0x7E00), y);
  return b.CreateTrunc(b.CreateOr(y, sign), half);
}

}  // namespace opfuse::cpu
