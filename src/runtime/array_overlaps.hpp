// Arrays of a caller that share memory. Kernels write parts of a result while others still read operands.
#pragma once

#include <vector>

#include "opfuse/array_view.hpp"
#include "runtime/artifact.hpp"

namespace opfuse {

/// E::bad_binding where an output's array shares bytes with an input's or another output's. Arrays without data or
/// elements share none.
void check_overlaps(const Artifact& a, const std::vector<ArrayView>& inputs, const std::vector<ArrayView>& outputs);

}  // namespace opfuse
