// x / c = x high + x low, where high is 1 / c rounded towards zero and low the rest: both have c's sign, so that an
// infinite x stays infinite.
#include "cpu/emit/math/division.hpp"

#include <cmath>

namespace opfuse::cpu {
namespace {

constexpr double kFar = 0x1p100;  // constants beyond have no reciprocal in two normal parts

std::optional<double> float_constant(Value* y) {
  auto* c = llvm::dyn_cast<llvm::Constant>(y);
  if (c && c->getType()->isVectorTy()) c = c->getSplatValue();
  const auto* real = llvm::dyn_cast_or_null<llvm::ConstantFP>(c);
  if (!real || !real->getType()->isFloatTy()) return std::nullopt;
  return real->getValueAPF().convertToFloat();
}

}  // namespace

Value* emit_quotient(Kernel& k, Value* x, Value* y) {
  const auto c = float_constant(y);
  int exponent = 0;
  const bool power_of_two = c && std::fabs(std::frexp(*c, &exponent)) == 0.5;  // exact as it is
  if (!c || power_of_two || !k.target.fma || !(std::fabs(*c) > 1 / kFar && std::fabs(*c) < kFar))
    return k.b.CreateFDiv(x, y);
  const double whole = 1 / *c;
  auto high = static_cast<float>(whole);
  if (std::fabs(high) > std::fabs(whole)) high = std::nextafter(high, 0.0F);
  const auto part = [&](double value) { return llvm::ConstantFP::get(x->getType(), value); };
  return k.fma(x, part(high), k.b.CreateFMul(x, part(whole - high)));
}

}  // namespace opfuse::cpu
