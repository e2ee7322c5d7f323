// Contractions that compute the epilogue of a register tile between the multiply-adds of the next one. Functions are
// long chains of operations of which few are multiply-adds: beside the products they take slots that these leave free,
// and some registers, so the tile is smaller.
#pragma once

#include "cpu/contraction/register_tile.hpp"

namespace opfuse {

/// The epilogue calls functions and reads nothing that lies at pixels; the products have no taps.
bool may_overlap(const Stage& stage, const ContractionView& view, const TargetInfo& target);

/// The fastest tile that leaves registers to an epilogue and of which all pixels and channels take whole ones;
/// `vectors`: of a block of weights, 0 where the tile decides. Nothing where `depth` steps of a tile that keeps nothing
/// save more than the epilogue between them.
std::optional<RegisterTile> overlapped_tile(const TileProblem& problem, int64_t depth, int64_t vectors,
                                            const TargetInfo& target);

/// Of such a tile, `depth` steps of it less what the epilogue costs otherwise.
double overlapped_cycles(const TileProblem& problem, int64_t depth, const RegisterTile& tile, const TargetInfo& target);

/// The tile of weights whose layout is still open.
RegisterTile choose_tile(const TileProblem& problem, const Stage& stage, const ContractionView& view,
                         const TargetInfo& target);

}  // namespace opfuse
