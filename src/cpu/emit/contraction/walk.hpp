// The loops around the tiles of a contraction, outermost first:
//
//   chunks of items    small enough to stay in cache while all blocks of channels pass over them
//   passes             over the input channels (passes.hpp)
//   blocks             of output channels; the last one may have code of its own
//   items              rows, stacks of rows, or tiles themselves
//   runs               of equal tiles along the pixels
#pragma once

#include "cpu/emit/contraction/tile.hpp"
#include "cpu/emit/parts.hpp"

namespace opfuse::cpu {

/// Emits one tile; `env` stands at its first pixel.
using TileBody = std::function<void(const Tile& tile, const Env& env)>;

/// All tiles of blocks `blocks` and items `items` at the batch coordinates in `env`.
void walk_tiles(const ContractionPlan& plan, const Env& env, PartRange blocks, PartRange items, const TileBody& body);

}  // namespace opfuse::cpu
