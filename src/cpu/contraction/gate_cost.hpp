// Whether products of one operand, combined behind them (a gated MLP), are faster as one kernel than one after the
// other.
#pragma once

#include <optional>
#include <string>

#include "kernel/spec.hpp"

namespace opfuse {

/// Cycles of one core; an open number of rows counts as a long one.
struct GateCost {
  double saved = 0;  ///< the first product's way out and back, and a launch
  double tile = 0;   ///< register tiles that hold columns of every product, where those of one were chosen freely
  bool pays() const { return saved > tile; }
};

/// `region`: one stage of several sums that is generated.
GateCost gate_cost(const Region& region, const TargetInfo& target);

/// Why it does not pay, as a sentence; empty where it pays.
std::optional<std::string> gate_loses(const Region& region, const TargetInfo& target);

}  // namespace opfuse
