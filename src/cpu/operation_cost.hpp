// What one operation of an expression costs, operands not counted.
#pragma once

#include "expr/expr.hpp"
#include "target/target.hpp"

namespace opfuse {

/// Instructions of a function's code (cpu/emit/math), of a power's too, those of exp being 1.
double weight_of_function(ExprOp op);
/// The same of an operation: 0 where it is neither a function nor a power.
double weight_of(const Expr& e);
/// Of all operations of a value, each once.
double weight_of_functions(const Expr& value);

/// Cycles of one core for a vector of f32. A quotient that is computed with the function below it costs next to
/// nothing.
double cost_of_op(const Expr& e, const VectorCosts& costs);

}  // namespace opfuse
