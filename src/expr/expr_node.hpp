// The inside of Expr.
#pragma once

#include "expr/expr.hpp"
#include "expr/held_ops.hpp"

namespace opfuse {

struct ExprNode {
  ExprOp op = ExprOp::constant;
  DType dtype = DType::f64;
  bool weak = false;
  int index = 0;
  double real = 0;      ///< constants of a float dtype
  int64_t integer = 0;  ///< constants of an integer or boolean dtype
  Dim dim;
  std::vector<Expr> args;
  ExprOps ops = ExprOp::constant;  ///< its own and those of its operands, set when it becomes shared
};

}  // namespace opfuse
