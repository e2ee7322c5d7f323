// Floats of a byte or less in vectors: codes to f32 and back.
#pragma once

#include "cpu/emit/kernel.hpp"

namespace opfuse::cpu {

Value* widen_byte(Kernel& k, Value* code, DType dtype);
/// Rounds to nearest, ties to even; what is too large becomes what the format has for that.
Value* narrow_byte(Kernel& k, Value* x, DType dtype);

}  // namespace opfuse::cpu
