// Why a compilation fused what it fused, and why not the rest: what `opfuse explain` and opfuse::explain say.
#pragma once

#include "driver/compilation.hpp"
#include "opfuse/opfuse.hpp"

namespace opfuse {

/// The remarks of a compilation that has its plan; about all nodes it also needs Milestone::shaped, for what the target
/// makes of Linears of one value and of gated MLPs. E::unknown_name for a node that does not exist.
std::vector<Remark> remarks_on(const Compilation& compilation, const ExplainRequest& request);

}  // namespace opfuse
