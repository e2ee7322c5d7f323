// Sums of products of bf16 numbers in f32: a word of two channels of a pixel is broadcast, and a vector of weights
// holds those channels of each output (vdpbf16ps). The instruction's law, which docs/precision.md states, is
//
//   acc = fma(x1, w1, acc), then acc = fma(x0, w0, acc)     numbers below 2^-126 count as 0, before and after
#include <llvm/IR/IntrinsicsX86.h>

#include "cpu/emit/contraction/product.hpp"

namespace opfuse::cpu {
namespace {

llvm::Intrinsic::ID pair_products(const TargetInfo& target) {
  if (target.vector_bytes == 64) return llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512;
  return target.vector_bytes == 32 ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_256
                                   : llvm::Intrinsic::x86_avx512bf16_dpbf16ps_128;
}

}  // namespace

Product half_products(Kernel& k, const ContractionView& view) {
  const auto lanes = static_cast<int>(view.types.lanes(k.target));
  Product p;
  p.unit = view.types.unit();
  p.word = k.b.getInt32Ty();
  p.weights = k.lanes(k.b.getBFloatTy(), static_cast<int>(p.unit) * lanes);
  p.sums = k.lanes(k.b.getFloatTy(), lanes);
  p.spread = [&k, lanes, type = p.weights](Value* x) { return Factor{k.b.CreateBitCast(k.splat(x, lanes), type)}; };
  p.unpack = [](Value* w) { return Factor{w}; };
  p.add = [&k](Value* sums, const Factor& x, const Factor& w) {
    return k.b.CreateIntrinsic(pair_products(k.target), {}, {sums, x[0], w[0]});
  };
  return p;
}

}  // namespace opfuse::cpu
