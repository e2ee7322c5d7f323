// How far a kernel's result of one operation may be from the exact one: what its operands' errors become, plus the
// rounding or the documented ULPs of the operation itself (docs/accuracy.md).
#pragma once

#include <span>

#include "expr/expr.hpp"
#include "proof/lanes.hpp"

namespace opfuse {

/// What kernels compute a dtype in: halves in f32, rounded where they are stored or cast.
DType computed_in(DType dtype);
/// Half an ULP of a float dtype, relative to a number: 2^-24 of f32. Of f64: what the oracle itself may be off.
double unit_of(DType dtype);
/// The largest finite number, and the smallest normal one, below which kernels may store 0.
double largest_of(DType dtype);
double smallest_normal_of(DType dtype);

/// Rounding of `v` to `dtype`: 0 where `v` is a number of that type.
double rounding_of(DType dtype, double v);

/// Of `v`, which is off by `error`, once it is stored as `dtype`.
Reach stored_error(DType dtype, double v, const Reach& error);

/// ULPs that the generators' functions keep, 0.5 for IEEE operations.
double ulps_of(ExprOp op);

/// What is known of one operation beyond its operands.
struct OperationNote {
  double ulps = 0;      ///< instead of ulps_of, if larger
  double absolute = 0;  ///< an activation by a table: error below -1, of its argument `of`
  int argument = -1;    ///< slot of that argument
  bool typed = false;   ///< see ErrorModel
};

/// `out` = op(args) in `count` lanes, with errors. Leaves are not operations.
void apply_with_error(ExprOp op, DType dtype, std::span<const Lanes* const> args, const OperationNote& note,
                      const Lanes* argument, int count, Lanes& out);

}  // namespace opfuse
