// f16, bf16 and 8-bit floats as memory holds them, and as registers do.
#pragma once

#include "cpu/emit/kernel.hpp"

namespace opfuse::cpu {

/// Bit patterns (i16; i8) <-> float, rounding to nearest even.
Value* widen_half(Kernel& k, Value* bits, DType dtype);
Value* narrow_half(Kernel& k, Value* x, DType dtype);
/// Two vectors of float as one of bf16, where Kernel::rounds_halves.
Value* narrow_pair(Kernel& k, Value* low, Value* high);

}  // namespace opfuse::cpu
