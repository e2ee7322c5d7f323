// What becomes of a tile's sums: the stage's outputs at its pixels and vectors of channels.
#pragma once

#include "cpu/emit/contraction/tile.hpp"

namespace opfuse::cpu {

/// The tile's points; results are the sums' places. `last`: of the last, narrower block.
std::vector<StageEmitter::Point> points_of(const ContractionPlan& plan, const Tile& tile, const Env& env, bool last);

/// The tile's sums begin with the bias (ContractionPlan::bias).
void start_with_bias(const ContractionPlan& plan, const Tile& tile, const Env& env);

/// Computes and stores the outputs.
void emit_epilogue(const ContractionPlan& plan, const Tile& tile, const Env& env);

}  // namespace opfuse::cpu
