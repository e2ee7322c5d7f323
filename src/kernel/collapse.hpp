// Simplifies a kernel's iteration space without changing what it computes: axes of extent 1 go, and
// neighbouring axes that every operand walks as one contiguous axis become one.
#pragma once

#include "kernel/spec.hpp"

namespace opfuse {

/// An equivalent region over (possibly) fewer axes and tensor dimensions, with its layouts.
struct Collapsed {
  Region region;
  std::vector<ParamLayout> layouts;
};
Collapsed collapse(const Region& region, const std::vector<ParamLayout>& layouts);

/// Only the removal of unit axes, which needs no layouts. Sequences of stages stay as they are.
Region without_unit_axes(const Region& region);

}  // namespace opfuse
