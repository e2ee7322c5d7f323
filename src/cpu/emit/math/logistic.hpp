// a / (1 + exp(z)) of 16 floats: sigmoid, SiLU and their spellings (AVX-512).
#pragma once

#include "cpu/emit/math/math_builder.hpp"

namespace opfuse::cpu {

bool has_logistic(Kernel& k, Value* z);
/// The numerators whose product with a reciprocal that is 0 instead of denormal stays close: 1, and -z (SiLU).
bool is_logistic_numerator(Value* a, Value* z);
/// Within 3 ULP where the reciprocal is a normal number; 0 * a where exp(z) is infinite.
Value* emit_logistic(Kernel& k, Value* a, Value* z);

}  // namespace opfuse::cpu
