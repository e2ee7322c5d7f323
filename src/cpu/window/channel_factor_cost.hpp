// Whether a gate of a contraction's data (squeeze-and-excitation) is cheaper as a factor of the weights.
#pragma once

#include <optional>
#include <string>

#include "kernel/spec.hpp"

namespace opfuse {

/// Cycles of one core per image.
struct ChannelFactorCost {
  double saved = 0;    ///< the gated map on its way out and back
  double scaling = 0;  ///< weights multiplied, and read without being fetched ahead, in every part
  int64_t parts = 1;   ///< that use the same weights
};

/// Why the gate should stay a kernel of its own; empty: it should not. `region`: one contraction that is generated.
std::optional<std::string> channel_factor_loses(const Region& region, const TargetInfo& target);

}  // namespace opfuse
