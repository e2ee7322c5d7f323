// The emitter's order of instructions is the kernel's (module.cpp). A core looks ahead some hundred instructions, so
// long chains of dependent ones overlap only when they lie side by side.
#pragma once

#include <functional>

#include "cpu/emit/kernel.hpp"

namespace opfuse::cpu {

/// Calls emit(0) ... emit(count - 1) and orders what they appended: each chain starts a tenth of its length behind the
/// one before, so that about ten are under way, all at different operations. They use nothing of each other, and what
/// one stores no other loads; those that leave their basic block stay one after the other.
void take_turns(Kernel& k, size_t count, const std::function<void(size_t)>& emit);

/// The same chains spread evenly between the instructions that follow `first` in the block, fewer at a time: those use
/// nothing of the chains and need most of the registers.
void take_turns_behind(Kernel& k, llvm::Instruction* first, size_t count, const std::function<void(size_t)>& emit);

}  // namespace opfuse::cpu
