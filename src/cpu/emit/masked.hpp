// Loads and stores of those lanes of a vector whose bit of a mask is set. Nothing else is read or written; the other
// lanes of a load are 0.
#pragma once

#include "cpu/emit/kernel.hpp"

namespace opfuse::cpu {

Value* masked_load(Kernel& k, llvm::Type* vector, Value* from, llvm::Align align, Value* mask);
void masked_store(Kernel& k, Value* value, Value* to, llvm::Align align, Value* mask);

}  // namespace opfuse::cpu
