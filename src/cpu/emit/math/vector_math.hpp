// Elementary functions on scalars or vectors of float and double, inlined as IR: kernels have no
// undefined symbols, so there is no libm. float: exp, log, tanh <= 2 ULP, erf <= 4 ULP over the whole
// range with infinities, NaN and denormals; the rarer functions go through double and round once.
#pragma once

#include "cpu/emit/kernel.hpp"
#include "expr/expr.hpp"

namespace opfuse::cpu {

/// Emits a real unary function (exp ... atanh, floor, ceil, round_even, sqrt, rsqrt, reciprocal). `jumps`: what few
/// numbers need may be skipped by a jump, which leaves several blocks.
Value* emit_function(Kernel& k, ExprOp op, Value* x, bool jumps = false);
/// exp of float x <= 0, within 2 ULP down to the smallest normal number and 0 below about 1e-38; NaN stays.
Value* emit_exp_below_zero(Kernel& k, Value* x);
Value* emit_pow(Kernel& k, Value* x, Value* y);
Value* emit_fmod(Kernel& k, Value* x, Value* y, bool jumps = false);

}  // namespace opfuse::cpu
