// Operand rules shared by the two typed domains, Expr and Scalar.
#pragma once

#include <vector>

#include "expr/expr.hpp"

namespace opfuse {

/// The dtype all value operands of an operation take; unknown when all are weak. Weak operands are
/// given as DType::unknown. Throws E::dtype_mismatch when strong operands differ or the operation has
/// no meaning for them.
DType operand_dtype(ExprOp op, const std::vector<DType>& args);

/// Operand 0 of select is a condition and takes no part in promotion.
inline bool is_condition(ExprOp op, size_t operand) { return op == ExprOp::select && operand == 0; }

/// A weak constant as a constant of `dtype`; E::dtype_mismatch when an integer dtype cannot hold it.
ScalarValue harden_constant(double value, DType dtype);

}  // namespace opfuse
