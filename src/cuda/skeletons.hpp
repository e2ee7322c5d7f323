// The skeletons of the CUDA generator. Each writes the body of a kernel from its stage and its schedule.
#pragma once

#include "cuda/stage.hpp"

namespace opfuse::cuda {

/// map, row, window: a team of threads (1, a warp or a block) per row; every row is independent.
void emit_rows(Kernel& k);
/// Updates stored at computed indices: a thread takes those of its own elements, in order.
void emit_scatter(Kernel& k);
/// contraction in fp32 arithmetic: tiles of both operands in shared memory, multiply-adds in registers.
void emit_tiles(Kernel& k);
/// contraction of f16 or bf16 operands on tensor cores (mma.sync) with fp32 sums.
void emit_mma(Kernel& k);

}  // namespace opfuse::cuda
