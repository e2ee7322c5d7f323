// Passes over input channels, between which sums rest in scratch.
#pragma once

#include "cpu/emit/contraction/tile.hpp"

namespace opfuse::cpu {

/// Zeros in the tile's accumulators.
void clear_sums(const ContractionPlan& plan, const Tile& tile);

/// One pass of a tile: goes on from the sums that rest, and leaves them there or computes the outputs.
void emit_tile_of_pass(const ContractionPlan& plan, const Tile& tile, const Env& env);

/// The weights behind those at `weights`: the next block's of this pass, or the first block's of the next. Behind the
/// last pass over the last block lies the next part's.
Value* next_weights(const ContractionPlan& plan, const Tile& tile, const Address& weights);

}  // namespace opfuse::cpu
