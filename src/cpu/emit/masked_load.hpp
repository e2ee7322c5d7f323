// Loads of those lanes of a vector whose bit of a mask is set, 0 in the others. Nothing else is read.
#pragma once

#include "cpu/emit/kernel.hpp"

namespace opfuse::cpu {

Value* masked_load(Kernel& k, llvm::Type* vector, Value* from, llvm::Align align, Value* mask);

}  // namespace opfuse::cpu
