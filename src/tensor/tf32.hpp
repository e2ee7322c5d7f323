// tf32: an f32 that was rounded to 10 bits of mantissa, as tensor cores read it; 4 bytes. Compiling puts it between
// kernels (docs/precision.md), no file and no caller has it: so it is none of the public header's types.
#pragma once

#include "tensor/dtype.hpp"

namespace opfuse {

/// Behind the last of the public types, as in the table of tensor/dtype.cpp.
inline constexpr DType kTf32 = static_cast<DType>(static_cast<int>(DType::unknown) + 1);

/// Nearest number of 10 bits of mantissa, halfway away from zero (PTX: cvt.rna.tf32.f32).
float to_tf32(float value);

}  // namespace opfuse
