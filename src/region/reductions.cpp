// The greatest of nothing is the least number of its type, and the other way round.
#include "region/reductions.hpp"

#include <limits>

#include "tensor/number.hpp"

namespace opfuse {

ScalarValue identity_of(ReduceKind kind, DType dtype) {
  ScalarValue value{dtype, 0, 0};
  const double infinity = std::numeric_limits<double>::infinity();
  switch (kind) {
    case ReduceKind::sum:
      break;
    case ReduceKind::product:
      value.real = 1, value.integer = 1;
      break;
    case ReduceKind::max:
      value.real = -infinity, value.integer = is_float(dtype) ? 0 : integer_min(dtype);
      break;
    case ReduceKind::min:
      value.real = infinity, value.integer = is_float(dtype) ? 0 : dtype == DType::u64 ? -1 : integer_max(dtype);
      break;
  }
  return value;
}

ExprOp combiner(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::sum:
      return ExprOp::add;
    case ReduceKind::product:
      return ExprOp::mul;
    case ReduceKind::max:
      return ExprOp::max;
    case ReduceKind::min:
      return ExprOp::min;
  }
  return ExprOp::add;
}

}  // namespace opfuse
