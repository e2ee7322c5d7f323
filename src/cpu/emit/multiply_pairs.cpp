#include "cpu/emit/multiply_pairs.hpp"

#include <llvm/IR/IntrinsicsX86.h>

namespace opfuse::cpu {

Value* multiply_pairs(Kernel& k, Value* x, Value* w) {
  const int64_t bytes = k.target.vector_bytes;
  const auto id = bytes == 64   ? llvm::Intrinsic::x86_avx512_pmaddw_d_512
                  : bytes == 32 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                                : llvm::Intrinsic::x86_sse2_pmadd_wd;
  llvm::Type* pairs = k.lanes(k.b.getInt16Ty(), static_cast<int>(bytes / 2));
  return k.b.CreateIntrinsic(id, {}, {k.b.CreateBitCast(x, pairs), k.b.CreateBitCast(w, pairs)});
}

}  // namespace opfuse::cpu
