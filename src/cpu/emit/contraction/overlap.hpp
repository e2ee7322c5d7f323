// The epilogue of a tile between the multiply-adds of the next (schedule number "overlap").
#pragma once

#include "cpu/emit/contraction/tile.hpp"
#include "cpu/emit/parts.hpp"

namespace opfuse::cpu {

/// All tiles of the part, as walk_tiles.
void emit_overlapped(const ContractionPlan& plan, const Env& env, PartRange blocks, PartRange items);

}  // namespace opfuse::cpu
