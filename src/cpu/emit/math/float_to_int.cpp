// llvm.fptosi.sat and fptoui.sat of vectors become a conversion per lane. These take whole vectors on every target:
//
//   up to 16 bits   clamp (the bounds are floats), convert to i32, cut off
//   i32             clamp below, convert, select what is too large
//   u32             the same, with 2^31 taken off before the conversion and put back behind it
//   64 bits         |x| = high * 2^32 + low, both exact in the float's own precision; the sign comes back last
//
// A comparison with NaN is false, so a clamp from below turns NaN into the bound. A conversion out of range is poison,
// but nothing of it is selected.
#include "cpu/emit/math/float_to_int.hpp"

#include <llvm/IR/Intrinsics.h>

#include <cmath>

namespace opfuse::cpu {
namespace {

class Converter {
 public:
  Converter(Kernel& k, Value* x) : k_(k), b_(k.b), x_(x), real_(x->getType()), width_(width_of(x)) {}

  Value* to(DType to) {
    const auto bits = static_cast<unsigned>(bit_size(to)), stored = static_cast<unsigned>(8 * byte_size(to));
    if (bits == 64) return wide(is_signed(to));
    if (bits == 32) return is_signed(to) ? to_i32(x_) : to_u32(x_);
    const double high = std::ldexp(1.0, static_cast<int>(is_signed(to) ? bits - 1 : bits)) - 1;
    const double low = is_signed(to) ? -high - 1 : 0;
    Value* v = b_.CreateFPToSI(below(above(x_, low), high), integer(32));
    if (is_signed(to)) v = zero_of_nan(x_, v);
    return b_.CreateTrunc(v, integer(stored));
  }

 private:
  Kernel& k_;
  llvm::IRBuilder<>& b_;
  Value* x_;
  llvm::Type* real_;
  int width_;

  llvm::Type* integer(unsigned bits) { return k_.lanes(b_.getIntNTy(bits), width_); }
  Value* number(double v) { return llvm::ConstantFP::get(real_, v); }
  Value* bits_of(unsigned bits, uint64_t v) { return llvm::ConstantInt::get(integer(bits), v); }
  Value* above(Value* x, double low) { return b_.CreateSelect(b_.CreateFCmpOGT(x, number(low)), x, number(low)); }
  Value* below(Value* x, double high) { return b_.CreateSelect(b_.CreateFCmpOLT(x, number(high)), x, number(high)); }
  Value* zero_of_nan(Value* x, Value* v) {
    return b_.CreateSelect(b_.CreateFCmpUNO(x, x), llvm::Constant::getNullValue(v->getType()), v);
  }

  Value* to_i32(Value* x) {
    Value* v = b_.CreateFPToSI(above(x, -0x1p31), integer(32));
    v = b_.CreateSelect(b_.CreateFCmpOGE(x, number(0x1p31 - 1)), bits_of(32, 0x7FFFFFFF), v);
    return zero_of_nan(x, v);
  }

  Value* to_u32(Value* x) {
    Value* y = above(x, 0);
    Value* large = b_.CreateFCmpOGE(y, number(0x1p31));
    Value* v = b_.CreateFPToSI(b_.CreateFSub(y, b_.CreateSelect(large, number(0x1p31), number(0))), integer(32));
    v = b_.CreateXor(v, b_.CreateSelect(large, bits_of(32, 0x80000000), bits_of(32, 0)));
    return b_.CreateSelect(b_.CreateFCmpOGE(y, number(0x1p32 - 1)), bits_of(32, 0xFFFFFFFF), v);
  }

  Value* wide(bool with_sign) {
    Value* size = with_sign ? b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x_) : above(x_, 0);
    Value* high = to_u32(b_.CreateFMul(size, number(0x1p-32)));
    Value* taken = b_.CreateFMul(b_.CreateUIToFP(high, real_), number(0x1p32));
    Value* low = to_u32(b_.CreateFSub(size, taken));
    Value* v =
        b_.CreateOr(b_.CreateShl(b_.CreateZExt(high, integer(64)), bits_of(64, 32)), b_.CreateZExt(low, integer(64)));
    if (!with_sign) return b_.CreateSelect(b_.CreateFCmpOGE(x_, number(0x1p64)), bits_of(64, ~uint64_t{0}), v);
    const uint64_t least = uint64_t{1} << 63;
    v = b_.CreateSelect(b_.CreateFCmpOLT(x_, number(0)), b_.CreateNeg(v), v);
    v = b_.CreateSelect(b_.CreateFCmpOGE(x_, number(0x1p63)), bits_of(64, least - 1), v);
    return b_.CreateSelect(b_.CreateFCmpOLE(x_, number(-0x1p63)), bits_of(64, least), v);
  }
};

}  // namespace

Value* emit_float_to_int(Kernel& k, Value* x, DType to) {
  if (width_of(x) > 1) return Converter(k, x).to(to);
  const auto id = is_signed(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
  llvm::Type* narrow = k.b.getIntNTy(static_cast<unsigned>(bit_size(to)));
  Value* v = k.b.CreateIntrinsic(id, {narrow, x->getType()}, {x});
  return is_signed(to) ? k.b.CreateSExt(v, k.value_type(to)) : k.b.CreateZExt(v, k.value_type(to));
}

}  // namespace opfuse::cpu
