// What a part of attention has in scratch: the emitter places it by these numbers, a schedule is bounded by them.
#pragma once

#include "cpu/attention/attention_schedule.hpp"
#include "kernel/attention_view.hpp"
#include "target/target.hpp"

namespace opfuse {

/// Floats.
struct AttentionScratch {
  int64_t depth_capacity = 0, key_capacity = 0;  ///< of the packed operands, in whole vectors
  int64_t score_stride = 0, result_stride = 0;   ///< from a row to the next
  int64_t packed_keys = 0, packed_values = 0, queries = 0, scores = 0;
  int64_t rows = 0;                ///< a number for each row of a tile, twice
  int64_t group = 0, results = 0;  ///< a number for each row of a group, twice, and their results; 0: one block of keys
  int64_t bytes(const TargetInfo& target) const;
};
AttentionScratch attention_scratch(const AttentionSchedule& schedule, const AttentionView& view, const Region& region,
                                   const TargetInfo& target);

/// Rows of a group, in whole tiles.
int64_t group_rows(const AttentionSchedule& schedule);

}  // namespace opfuse
