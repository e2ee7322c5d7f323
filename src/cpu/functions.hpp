// Which transcendental functions generated code has, by type.
#pragma once

#include "expr/expr.hpp"

namespace opfuse {

/// False for functions whose polynomials are float's only (erf, tan, inverse and hyperbolic ones) in f64.
bool has_function(ExprOp op, DType dtype);

}  // namespace opfuse
