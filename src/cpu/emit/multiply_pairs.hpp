// Products of i16, two at a time.
#pragma once

#include "cpu/emit/kernel.hpp"

namespace opfuse::cpu {

/// x[2i] w[2i] + x[2i + 1] w[2i + 1] in i32 (pmaddwd): exact but for four factors of -2^15. `x` and `w`: a vector of
/// the target, as i16 or as words of two.
Value* multiply_pairs(Kernel& k, Value* x, Value* w);

}  // namespace opfuse::cpu
