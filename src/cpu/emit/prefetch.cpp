#include "cpu/emit/prefetch.hpp"

#include <llvm/IR/Intrinsics.h>

namespace opfuse::cpu {

void prefetch(Kernel& k, Value* address, Ahead ahead) {
  k.b.CreateIntrinsic(
      llvm::Intrinsic::prefetch, {k.b.getPtrTy()},
      {address, k.b.getInt32(ahead == Ahead::write), k.b.getInt32(ahead == Ahead::far ? 2 : 3), k.b.getInt32(1)});
}

}  // namespace opfuse::cpu
