#include "cpu/emit/math/rare_lanes.hpp"

#include <llvm/IR/MDBuilder.h>

namespace opfuse::cpu {

std::vector<Value*> correct_lanes(Kernel& k, Value* needed, std::vector<Value*> usual, bool jumps,
                                  const std::function<std::vector<Value*>()>& rare) {
  auto& b = k.b;
  const auto corrected = [&] {
    std::vector<Value*> values = rare();
    for (size_t i = 0; i < values.size(); ++i) values[i] = b.CreateSelect(needed, values[i], usual[i]);
    return values;
  };
  if (!jumps) return corrected();
  const auto block = [&](const char* name) { return llvm::BasicBlock::Create(k.context(), name, k.function); };
  llvm::BasicBlock *before = b.GetInsertBlock(), *inside = block("rare"), *after = block("corrected");
  Value* any = width_of(needed) == 1 ? needed : b.CreateOrReduce(needed);
  b.CreateCondBr(any, inside, after, llvm::MDBuilder(k.context()).createBranchWeights(1, 1000));
  b.SetInsertPoint(inside);
  const std::vector<Value*> values = corrected();
  inside = b.GetInsertBlock();
  b.CreateBr(after);
  b.SetInsertPoint(after);
  for (size_t i = 0; i < usual.size(); ++i) {
    auto* chosen = b.CreatePHI(usual[i]->getType(), 2);
    chosen->addIncoming(usual[i], before);
    chosen->addIncoming(values[i], inside);
    usual[i] = chosen;
  }
  return usual;
}

}  // namespace opfuse::cpu
