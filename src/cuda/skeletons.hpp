// The skeletons of the CUDA generator; what writes them stands in cuda/emitters.hpp.
#pragma once

#include "cuda/tile_view.hpp"
#include "kernel/skeleton.hpp"

namespace opfuse::cuda {

Skeleton scatter_skeleton();  ///< updates at computed indices: a thread takes those of its own elements, in order
Skeleton mma_skeleton();      ///< contraction of f16 or bf16 operands on tensor cores (mma.sync) with fp32 sums
Skeleton tiles_skeleton();    ///< contraction in fp32: tiles of both operands in shared memory, sums in registers
Skeleton rows_skeleton();     ///< map, row, window: a team of threads (1, a warp or a block) per row

/// All of them, in the order in which they are asked.
Skeletons skeletons();

/// The form in which all of them get their regions: fewer axes, groups apart (cuda/tile_view.hpp).
extern const RegionForm kGrouped;

inline bool is_half(DType d) { return d == DType::f16 || d == DType::bf16; }

}  // namespace opfuse::cuda
