// Sums of codes whose weights lie in pairs (pairs.cpp).
#pragma once

#include "cpu/emit/contraction/tile.hpp"

namespace opfuse::cpu {

/// Bytes of a tile's data in the order of its weights.
int64_t bytes_of_pairs(const ContractionPlan& plan);

/// All products of the tile.
void add_pairs(const ContractionPlan& plan, const Tile& tile, const Env& env);

}  // namespace opfuse::cpu
