// The bytes of a region alone: what planning asks of each group that it tries.
#pragma once

#include "region/region.hpp"

namespace opfuse {

/// What `cost_of` says of bytes, without counting operations.
RegionCost traffic_of(const Region& region, const SymbolValues& symbols);

}  // namespace opfuse
