// Which transcendental functions generated code has, by type.
#pragma once

#include "expr/expr.hpp"

namespace opfuse {

/// False for functions whose polynomials are float's only (erf, tan, inverse and hyperbolic ones) in f64.
bool has_function(ExprOp op, DType dtype);

/// exp, log, roots, tanh, erf, trigonometric and hyperbolic ones: more than one instruction per vector.
bool is_function(ExprOp op);

}  // namespace opfuse
