// Quotients of real numbers.
#pragma once

#include "cpu/emit/kernel.hpp"

namespace opfuse::cpu {

/// x / y. By a constant, on targets with FMA: x times the constant's reciprocal in two parts, 2 instructions that
/// overlap where a division of 16 floats keeps its unit busy for 10 cycles. Within 0.51 ULP, 1 ULP where the quotient
/// is almost denormal.
Value* emit_quotient(Kernel& k, Value* x, Value* y);

}  // namespace opfuse::cpu
