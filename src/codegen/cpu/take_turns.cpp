// Measured on 28 vectors of SiLU, 23 operations each (AMD Zen 5): 8.5 cycles per vector one after the other, 7.1 four
// at a time side by side, where all four want the same units at once, 6.2 staggered by two operations, 6.5 by three.
#include "codegen/cpu/take_turns.hpp"

#include <algorithm>

namespace opfuse::cpu {
namespace {

constexpr size_t kUnderWay = 10;

}  // namespace

void take_turns(Kernel& k, size_t count, const std::function<void(size_t)>& emit) {
  llvm::BasicBlock* block = k.b.GetInsertBlock();
  size_t longest = 0;
  std::vector<std::vector<llvm::Instruction*>> chains(count);
  for (size_t i = 0; i < count; ++i) {
    llvm::Instruction* before = block->empty() ? nullptr : &block->back();
    emit(i);
    if (k.b.GetInsertBlock() != block) {
      for (++i; i < count; ++i) emit(i);
      return;
    }
    for (auto at = before ? std::next(before->getIterator()) : block->begin(); at != block->end(); ++at)
      chains[i].push_back(&*at);
    longest = std::max(longest, chains[i].size());
  }
  const size_t lag = std::max<size_t>(1, longest / kUnderWay);
  for (size_t time = 0; time < longest + lag * count; ++time)
    for (size_t i = 0; i < count && i * lag <= time; ++i)
      if (const size_t step = time - i * lag; step < chains[i].size())
        chains[i][step]->moveBefore(*block, block->end());
}

}  // namespace opfuse::cpu
