// Names for what rewrites made without one, so that reports, plans and written files speak of it alike.
#pragma once

#include "ir/graph.hpp"

namespace opfuse {

/// Every unnamed result is named after its node ("conv1", "split1:1"), every unnamed constant after its first reader
/// and the operand it is there ("conv1.w"); results in bodies without named nodes after their operator
/// ("rms_norm/sqrt"). Names stay unique; structure and hashes do not change.
void name_values(Graph& graph);

}  // namespace opfuse
