// Weights that lie as codes (cpu/contraction/decoded_weights.hpp), in registers and into scratch.
#pragma once

#include "cpu/emit/contraction/tile.hpp"
#include "cpu/emit/parts.hpp"

namespace opfuse::cpu {

/// The products of one tile, whose weights are decoded as they are read.
void add_decoded(const ContractionPlan& plan, const Tile& tile, const Env& env);

/// Block `block` of the weights goes into scratch, where ContractionPlan::weights looks for it.
void decode_block(const ContractionPlan& plan, Value* block);

}  // namespace opfuse::cpu
