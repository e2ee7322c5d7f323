// Index maps as keys of tables.
#pragma once

#include "region/region.hpp"

namespace opfuse {

/// Equal maps have equal numbers.
uint64_t hash_of(const IndexMap& map);

}  // namespace opfuse
