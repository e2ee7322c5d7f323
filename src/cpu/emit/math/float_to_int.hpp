// Casts of floats to integers: towards zero, saturating, NaN gives 0 (truncate_to, tensor/number.hpp).
#pragma once

#include "cpu/emit/kernel.hpp"

namespace opfuse::cpu {

/// `x`: float or double, scalar or lanes; `to`: any integer type but boolean.
Value* emit_float_to_int(Kernel& k, Value* x, DType to);

}  // namespace opfuse::cpu
