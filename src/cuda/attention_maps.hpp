// The operands of attention as boxes of the copy engine, and the shared memory of the kernel that takes them.
#pragma once

#include "cuda/operand_maps.hpp"
#include "cuda/schedules.hpp"
#include "kernel/attention_view.hpp"

namespace opfuse::cuda {

inline constexpr int64_t kAttentionPart = 32, kAttentionPad = 4;  ///< columns that a warp stages at a time

/// Panels of 64 numbers, 128 bytes.
inline int64_t panels_of(int64_t numbers) { return (numbers + 63) / 64; }

struct AttentionMaps {
  std::optional<OperandMap> q;  ///< none: what queries are is computed
  OperandMap k, v;
};
/// nullopt: keys or values do not lie as boxes (transposed keys, for example).
std::optional<AttentionMaps> attention_maps(const Region& region, const std::vector<ParamLayout>& layouts,
                                            const AttentionView& view, const AttentionTmaSchedule& s);

/// Shared memory of a block. Blocks that a multiprocessor has at once: two where that leaves registers for scores,
/// sums, and what scores read beside their product.
int64_t attention_tma_bytes(const AttentionTmaSchedule& s, int64_t depth, int64_t columns);
int attention_tma_resident(const AttentionTmaSchedule& s, const Region& region, const AttentionView& view);

}  // namespace opfuse::cuda
