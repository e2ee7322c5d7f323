// As for halves: exponent and mantissa are moved to a float's place and rescaled, which makes denormal numbers come out
// right; on the way back a number is added whose last place is that of the denormal ones.
//   f8e8m0 is an exponent: codes 1 to 254 are those of a float, 0 is its denormal 2^-127, 255 NaN
#include "cpu/emit/math/byte_float.hpp"

#include <bit>
#include <cmath>

#include "tensor/small_float.hpp"

namespace opfuse::cpu {
namespace {

constexpr uint32_t kInfinity = 0x7F800000, kNan = 0x7FC00000;

class ByteFloat {
 public:
  ByteFloat(Kernel& k, DType dtype, int width)
      : b_(k.b),
        word_(k.lanes(k.b.getInt32Ty(), width)),
        real_(k.lanes(k.b.getFloatTy(), width)),
        byte_(k.lanes(k.b.getInt8Ty(), width)),
        sign_(bit_size(dtype) - 1) {}

  Value* widen_exponent(Value* code) {
    Value* x = b_.CreateZExt(code, word_);
    Value* v = b_.CreateSelect(b_.CreateICmpEQ(x, c(0)), c(0x00400000), b_.CreateShl(x, 23));
    return b_.CreateBitCast(b_.CreateSelect(b_.CreateICmpEQ(x, c(0xFF)), c(kNan), v), real_);
  }

  Value* narrow_exponent(Value* x) {
    Value* a = b_.CreateAnd(b_.CreateBitCast(x, word_), 0x7FFFFFFF);
    Value* normal = b_.CreateZExt(b_.CreateICmpUGE(a, c(0x00800000)), word_);
    Value* exponent = b_.CreateLShr(b_.CreateAdd(a, b_.CreateAdd(c(0x003FFFFF), normal)), 23);
    return b_.CreateTrunc(b_.CreateSelect(b_.CreateICmpUGE(a, c(kInfinity)), c(0xFF), exponent), byte_);
  }

  Value* widen(Value* code, const SmallFormat& f) {
    Value* x = b_.CreateAnd(b_.CreateZExt(code, word_), c((2u << sign_) - 1));
    Value* size = b_.CreateAnd(x, c((1u << sign_) - 1));
    Value* placed = b_.CreateBitCast(b_.CreateShl(size, static_cast<uint64_t>(23 - f.mantissa_bits)), real_);
    Value* scaled = b_.CreateFMul(placed, llvm::ConstantFP::get(real_, std::ldexp(1.0, 127 - f.bias)));
    Value* v = b_.CreateBitCast(scaled, word_);
    if (f.overflow == Overflow::infinite)
      v = b_.CreateSelect(b_.CreateICmpEQ(size, c(f.greatest + 1)), c(kInfinity), v);
    if (f.overflow == Overflow::infinite || f.overflow == Overflow::only_nan)
      v = b_.CreateSelect(b_.CreateICmpUGT(size, c(f.greatest + (f.overflow == Overflow::infinite))), c(kNan), v);
    Value* sign = b_.CreateShl(b_.CreateLShr(x, static_cast<uint64_t>(sign_)), 31);
    v = b_.CreateOr(v, sign);
    if (f.overflow == Overflow::negative_zero) v = b_.CreateSelect(b_.CreateICmpEQ(x, c(1u << sign_)), c(kNan), v);
    return b_.CreateBitCast(v, real_);
  }

  Value* narrow(Value* x, const SmallFormat& f) {
    Value* bits = b_.CreateBitCast(x, word_);
    Value* a = b_.CreateAnd(bits, 0x7FFFFFFF);
    Value* code = nearest(a, f);
    Value* sign = b_.CreateShl(b_.CreateLShr(bits, 31), static_cast<uint64_t>(sign_));
    Value* nan = b_.CreateFCmpUNO(x, x);
    Value* over = b_.CreateICmpUGT(code, c(f.greatest));
    Value* signed_code = b_.CreateOr(code, sign);
    switch (f.overflow) {
      case Overflow::saturates:
        signed_code = b_.CreateOr(b_.CreateSelect(over, c(f.greatest), code), sign);
        code = b_.CreateSelect(nan, c(1u << sign_), signed_code);
        break;
      case Overflow::negative_zero:
        signed_code = b_.CreateSelect(b_.CreateICmpEQ(code, c(0)), c(0), signed_code);
        code = b_.CreateSelect(over, c(1u << sign_), signed_code);
        break;
      case Overflow::only_nan:
        code = b_.CreateOr(b_.CreateSelect(over, c(f.greatest + 1), code), sign);
        break;
      case Overflow::infinite:
        code = b_.CreateSelect(over, c(f.greatest + 1), code);
        code = b_.CreateOr(b_.CreateSelect(nan, c(0x7E), code), sign);
        break;
    }
    return b_.CreateTrunc(code, byte_);
  }

 private:
  llvm::IRBuilder<>& b_;
  llvm::Type *word_, *real_, *byte_;
  int sign_;

  template <class T>
  Value* c(T value) {
    return llvm::ConstantInt::get(word_, static_cast<uint32_t>(value));
  }

  /// Code of a magnitude, beyond the greatest where it is too large.
  Value* nearest(Value* a, const SmallFormat& f) {
    const int dropped = 23 - f.mantissa_bits;
    Value* lowest = b_.CreateAnd(b_.CreateLShr(a, static_cast<uint64_t>(dropped)), 1);
    Value* up = b_.CreateAdd(a, b_.CreateAdd(lowest, c((1u << (dropped - 1)) - 1)));
    Value* normal = b_.CreateSub(b_.CreateLShr(up, static_cast<uint64_t>(dropped)),
                                 c(static_cast<uint32_t>(127 - f.bias) << f.mantissa_bits));
    const auto aligning = static_cast<float>(std::ldexp(1.0, 1 - f.bias + dropped));
    Value* sum = b_.CreateFAdd(b_.CreateBitCast(a, real_), llvm::ConstantFP::get(real_, static_cast<double>(aligning)));
    Value* denormal = b_.CreateSub(b_.CreateBitCast(sum, word_), c(std::bit_cast<uint32_t>(aligning)));
    const auto least_normal = static_cast<float>(std::ldexp(1.0, 1 - f.bias));
    return b_.CreateSelect(b_.CreateICmpULT(a, c(std::bit_cast<uint32_t>(least_normal))), denormal, normal);
  }
};

}  // namespace

Value* widen_byte(Kernel& k, Value* code, DType dtype) {
  ByteFloat floats(k, dtype, width_of(code));
  return dtype == DType::f8e8m0 ? floats.widen_exponent(code) : floats.widen(code, small_format(dtype));
}

Value* narrow_byte(Kernel& k, Value* x, DType dtype) {
  ByteFloat floats(k, dtype, width_of(x));
  return dtype == DType::f8e8m0 ? floats.narrow_exponent(x) : floats.narrow(x, small_format(dtype));
}

}  // namespace opfuse::cpu
