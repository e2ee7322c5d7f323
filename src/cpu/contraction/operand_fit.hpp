// What the layouts of a contraction's operands allow.
#pragma once

#include "kernel/spec.hpp"
#include "kernel/views.hpp"

namespace opfuse {

struct OperandFit {
  int64_t vectors = 1;  ///< of output channels that one block of weights holds
  int64_t grouped = 0;  ///< 1: lanes of several groups, permuted; 2: blended, or channels that straddle blocks
  int64_t step = 1;     ///< input channels per pass over the taps
  bool matrix = false;  ///< products of matrices
  bool paired = false;  ///< products of codes in pairs
};

/// None: they are not for register tiles. Weights that no layout makes fit may be packed by the kernel.
std::optional<OperandFit> fit_operands(const Region& region, const ContractionView& view,
                                       const std::vector<ParamLayout>& layouts, const TargetInfo& target);

}  // namespace opfuse
