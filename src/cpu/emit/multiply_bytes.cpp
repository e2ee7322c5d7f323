#include "cpu/emit/multiply_bytes.hpp"

#include <llvm/IR/IntrinsicsX86.h>

namespace opfuse::cpu {

Value* multiply_bytes(Kernel& k, Value* sums, Value* x, Value* w) {
  // the encodings of AVX-512 VNNI and of AVX-VNNI have these names
  const int64_t bytes = k.target.vector_bytes;
  const auto id = bytes == 64   ? llvm::Intrinsic::x86_avx512_vpdpbusd_512
                  : bytes == 32 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256
                                : llvm::Intrinsic::x86_avx512_vpdpbusd_128;
  return k.b.CreateIntrinsic(id, {}, {sums, x, w});
}

}  // namespace opfuse::cpu
