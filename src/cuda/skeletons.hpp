// The skeletons of the CUDA generator; what writes them stands in cuda/emitters.hpp.
#pragma once

#include "cuda/tile_view.hpp"
#include "kernel/skeleton.hpp"
#include "tensor/tf32.hpp"

namespace opfuse::cuda {

Skeleton scatter_skeleton();        ///< updates at computed indices: a thread takes those of its own elements, in order
Skeleton tma_skeleton();            ///< the same by blocks that stay, fed by the copy engine of sm_90a
Skeleton wgmma_skeleton();          ///< the same by groups of four warps, on sm_90a
Skeleton mma_skeleton();            ///< contraction of f16 or bf16 operands on tensor cores (mma.sync) with fp32 sums
Skeleton attention_tma_skeleton();  ///< attention on wgmma, its operands by the copy engine (sm_90a)
Skeleton attention_mma_skeleton();  ///< attention in f16 or bf16 on tensor cores: one kernel, scores in registers
Skeleton attention_skeleton();      ///< attention in fp32 arithmetic: one kernel, operands in shared memory
Skeleton tiles_skeleton();          ///< contraction in fp32: tiles of both operands in shared memory, sums in registers
Skeleton
depthwise_skeleton();  ///< depthwise convolutions of f16 or bf16: a thread has eight channels of several columns
Skeleton window_rows_skeleton();  ///< a depthwise window and the rows of channels behind it: LayerNorm
Skeleton rows_skeleton();         ///< map, row, window: a team of threads (1, a warp or a block) per row

/// All of them, in the order in which they are asked.
Skeletons skeletons();

/// Windows in half precision: images and filters with their channels last, as tensor cores want their neighbours.
void wish_channels_last(const Region& region, LayoutWish& wish);

/// The form in which all of them get their regions: fewer axes, groups apart (cuda/tile_view.hpp).
extern const RegionForm kGrouped;

inline bool is_half(DType d) { return d == DType::f16 || d == DType::bf16; }
/// What tensor cores multiply with fp32 sums; tf32 lies in 4 bytes.
inline bool is_factor(DType d) { return is_half(d) || d == kTf32; }

}  // namespace opfuse::cuda
