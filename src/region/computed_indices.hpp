// Which stages may read at computed coordinates: maps and scatters (computes_indices), and rows, whose index is that of
// the row in most of them (a table of embeddings in front of a norm).
#pragma once

#include "region/region.hpp"

namespace opfuse {

inline bool reads_at_computed(Anchor anchor) { return computes_indices(anchor) || anchor == Anchor::row; }

}  // namespace opfuse
