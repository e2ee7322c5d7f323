// Whether this machine runs code that needs some CPU features.
#pragma once

#include <string>
#include <vector>

namespace opfuse {

/// Those of `features` (as in TargetInfo::features) that this machine lacks, in their order; empty: it runs such code.
std::vector<std::string> missing_features(const std::vector<std::string>& features);

}  // namespace opfuse
