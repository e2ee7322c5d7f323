// Buffers of an arena that is placed are moved to memory that was touched a short while ago: it is still in a cache,
// where lines that were touched long ago are fetched first and written back later.
#pragma once

#include <cstdint>
#include <vector>

#include "program/lifetimes.hpp"

namespace opfuse {

struct ArenaItem {
  int buffer = 0;
  int64_t bytes = 0;  ///< in units of the scale
  Lifetime life;
  int64_t offset = -1;
};

/// No two items that are alive together share a byte, and none ends behind the highest end of before.
void move_to_hot_places(std::vector<ArenaItem>& items);

}  // namespace opfuse
