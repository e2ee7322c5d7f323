// The register tile of a contraction, from extents and the target alone.
//
// A tile of `w` pixels and `v` vectors of output channels needs, per step of the reduction,
//   w*v multiply-adds on 2 units, w + v loads on 2 ports, v vectors of weights from L2, and at least one
//   add latency for the whole tile;
// accumulators, v weights and one broadcast must fit in the registers. The tile with the least time over
// all pixels and channels wins.
#pragma once

#include "codegen/views.hpp"
#include "target/target.hpp"

namespace opfuse {

struct RegisterTile {
  int64_t vectors = 1, width = 1;
};

bool fits(const RegisterTile& tile, const TargetInfo& target);

/// Pixels a tile may take; a symbolic extent is taken for a long one, no axis (-1) for one pixel.
int64_t pixel_count(const Stage& stage, int axis);

/// Width of the fastest tile of `vectors` vectors over a row of `pixels`.
int64_t widest(int64_t pixels, int64_t vectors, const TargetInfo& target);

RegisterTile choose_tile(int64_t channels, int64_t pixels, const TargetInfo& target);

}  // namespace opfuse
