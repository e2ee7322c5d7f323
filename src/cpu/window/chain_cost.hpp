// Whether a convolution and the window behind it are faster as one kernel than one after the other.
#pragma once

#include <string>

#include "kernel/spec.hpp"

namespace opfuse {

/// Cycles of one core per image; symbolic extents count as 1.
struct ChainCost {
  double saved = 0;       ///< what the map between the two takes on its way out and back
  double tile = 0;        ///< rows cut into register tiles one by one, where whole images were cut
  double recomputed = 0;  ///< rows at borders of parts, which both neighbours compute
  double unshared = 0;    ///< a second worker waits at the end
  double switching = 0;   ///< between the stages, band by band; below it, a prediction says nothing
  double lost() const { return tile + recomputed + unshared + switching; }
  bool pays() const { return saved > lost(); }
};

/// `region`: two stages that are generated (cpu/window/chain_view.hpp).
ChainCost chain_cost(const Region& region, const TargetInfo& target);

/// Why it does not pay, as a sentence: cycles lost, or another algorithm that may compute the convolution. Empty where
/// it pays. `region` as above.
std::optional<std::string> chain_loses(const Region& region, const TargetInfo& target);

}  // namespace opfuse
