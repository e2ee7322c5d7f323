// The one question about the number of stages that others than skeletons (`see`) and their views ask: most of what is
// generated is one loop nest, and tiles, layouts and parts of several are their skeleton's own.
#pragma once

#include "region/region.hpp"

namespace opfuse {

inline bool is_single_stage(const Region& region) { return region.stages.size() == 1; }

}  // namespace opfuse
