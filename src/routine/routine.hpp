// Routines of the runtime: operators whose results have sizes that only data say. They are library code, not generated.
//
//   non_zero             x                                          y [rank, n]                    defines n
//   non_max_suppression  boxes, scores, most, overlap, least score  rows [n, 3]                    defines n
//   compress             x, condition                               x where the condition is true  defines their number
//   unique               x                                          y, first, inverse, counts      defines their number
//   choose               condition, a, b                            a or b                         defines sizes where
//   they differ read_sizes           integers                                   the same                       defines
//   what they are
//
// Operands are dense. A routine runs before there is memory for its results, which are copied to it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "routine/routine_call.hpp"
#include "tensor/tensor.hpp"

namespace opfuse {

struct RoutineResult {
  std::vector<Tensor> results;
  std::vector<int64_t> sizes;  ///< values of RoutineCall::defines
};

/// Null: an operand that is absent.
using RoutineOperands = std::span<const Tensor* const>;

/// Whether there is one of that name.
bool is_routine(std::string_view name);
/// E::shape_mismatch where operands do not fit each other at these sizes.
RoutineResult run_routine(const RoutineCall& call, RoutineOperands operands);

}  // namespace opfuse
