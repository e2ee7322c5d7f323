#include "cpu/functions.hpp"

namespace opfuse {

bool has_function(ExprOp op, DType dtype) {
  if (dtype != DType::f64) return true;
  switch (op) {
    case ExprOp::erf:
    case ExprOp::tan:
    case ExprOp::asin:
    case ExprOp::acos:
    case ExprOp::atan:
    case ExprOp::sinh:
    case ExprOp::cosh:
    case ExprOp::asinh:
    case ExprOp::acosh:
    case ExprOp::atanh:
      return false;
    default:
      return true;
  }
}

bool is_function(ExprOp op) { return op >= ExprOp::exp && op <= ExprOp::atanh; }

}  // namespace opfuse
