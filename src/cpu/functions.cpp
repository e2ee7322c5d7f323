// f64 has the functions whose polynomials were made for it.
#include "cpu/functions.hpp"

#include <algorithm>

namespace opfuse {

bool has_function(ExprOp op, DType dtype) {
  static constexpr ExprOp kFloatOnly[] = {ExprOp::erf,  ExprOp::tan,  ExprOp::asin,  ExprOp::acos,  ExprOp::atan,
                                          ExprOp::sinh, ExprOp::cosh, ExprOp::asinh, ExprOp::acosh, ExprOp::atanh};
  return dtype != DType::f64 || std::find(std::begin(kFloatOnly), std::end(kFloatOnly), op) == std::end(kFloatOnly);
}

}  // namespace opfuse
