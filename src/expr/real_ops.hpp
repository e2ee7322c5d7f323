// What operations on real numbers mean, without types and roundings.
#pragma once

#include "expr/expr.hpp"

namespace opfuse {

/// Of one operand, neg to round_even.
double real_unary(ExprOp op, double x);
inline bool is_real_unary(ExprOp op) { return op >= ExprOp::neg && op <= ExprOp::round_even; }

/// Of two, add to pow.
double real_binary(ExprOp op, double a, double b);
inline bool is_real_binary(ExprOp op) { return op >= ExprOp::add && op <= ExprOp::pow; }

/// exp, log, roots, tanh, erf, trigonometric and hyperbolic ones: more than one instruction per vector.
inline bool is_function(ExprOp op) { return op >= ExprOp::exp && op <= ExprOp::atanh; }

}  // namespace opfuse
