// The tensor that a read reads: a parameter of the region, or what an earlier stage keeps.
#pragma once

#include "region/region.hpp"

namespace opfuse {

inline const Shape& shape_read_by(const Region& region, const Read& read) {
  const auto index = static_cast<size_t>(read.index);
  if (read.stage < 0) return region.params[index].type.shape;
  return region.stages[static_cast<size_t>(read.stage)].outputs[index].shape;
}

}  // namespace opfuse
