// Maps whose operands lie along another axis than their results.
#pragma once

#include <optional>
#include <vector>

#include "cpu/emit/stage.hpp"

namespace opfuse::cpu {

struct Turned {
  int along = -1, across = -1;  ///< domain axes: of the results' neighbours, of the turned operands'
  int64_t block = 1;            ///< results are visited in whole blocks of this along `along`
  int width = 1;
  std::vector<int> reads;  ///< the turned ones
};
/// Nothing where no operand is worth turning.
std::optional<Turned> find_turned(const StageEmitter& stage, int along, int64_t block, int width);

/// `order`: domain axes from the outermost in memory; `work` decides the number of parts.
void emit_turned(Kernel& k, StageEmitter& stage, const Turned& turned, const std::vector<int>& order, const Dim& work);

}  // namespace opfuse::cpu
