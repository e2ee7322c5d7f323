// What the last pass over a row computes again of an earlier one rests where its result will be:
//
//   sum of exp(x - max), then exp(x - max) / sum      y = exp(x - max) while it is summed; then y = y / sum
//   sum of x + z, sum of (x + z - mean)^2, s = x + z  s is stored by the first sum, and read from then on
//
// A row lies in L1 from one pass to the next.
#pragma once

#include <optional>

#include "cpu/emit/generic/row_reductions.hpp"
#include "cpu/emit/stage.hpp"

namespace opfuse::cpu {

struct RestingRow {
  Stage stage;            ///< with what is read again as a read of the result
  int reduction = 0;      ///< which stores it
  Expr value;             ///< of that reduction, its own node
  size_t output = 0;      ///< where it rests
  IndexMap map;           ///< of the result, by the reduction's axes
  bool finished = false;  ///< it is the result: nothing is left to store
};

/// Nothing where nothing is computed twice, or where the result may lie in memory that later passes read.
std::optional<RestingRow> find_resting_row(const Kernel& k, const StageEmitter& stage, const NestPlan& plan);

}  // namespace opfuse::cpu
