// Means on the way: a last stage that averages whole bands of rows of the map that the stage before it stores. A kernel
// sums the rows while it has them, so the map is not read again; parts cut the rows where bands end.
#pragma once

#include <optional>

#include "region/region.hpp"

namespace opfuse {

struct MeanView {
  int bands = 0;                ///< the stage that averages them
  int map = 0;                  ///< the stage before it, which makes the map
  int kept = -1;                ///< its output that only the means read; it needs no memory of its own
  int stored = -1;              ///< the same values as a result of the region
  int64_t count = 1, rows = 1;  ///< bands, and rows of each
};

/// Empty: the region has no such stage.
std::optional<MeanView> view_means(const Region& region);

/// Stages but that one.
size_t stages_without_means(const Region& region);

}  // namespace opfuse
