// How the work of a launch is cut into parts: from shapes alone, so that results have the same bits at any number of
// threads.
#pragma once

#include "cpu/parts_schedule.hpp"
#include "kernel/spec.hpp"

namespace opfuse {

/// Points of a stage's loop nest; symbolic extents count as 1.
int64_t work_of(const Stage& stage);

/// Launches for more threads than these are cut finer.
inline constexpr int64_t kFewThreads = 4;

/// About 10 us of one core per part, or of its share of the memory bandwidth; at most 16 parts, of products of
/// matrices 4. For many threads
/// (LaunchCosts::threads) 2 us, and as many parts as there are threads, or twice as many.
int64_t wanted_parts(double macs, const TargetInfo& target, double bytes = 0);

/// parts_o x parts_p pieces of `blocks` x `rows`, at least `wanted` where possible: the split with the
/// largest piece smallest, then the least memory traffic.
void split_parts(Parts& s, int64_t wanted, int64_t blocks, int64_t rows, double weight_bytes, double data_bytes,
                 const TargetInfo& target);

/// As many pieces of the blocks as make at least `wanted` parts with `rows` pieces of the rows, as evenly as possible.
void split_blocks(Parts& s, int64_t wanted, int64_t blocks, int64_t rows, const TargetInfo& target);

/// Neighbouring parts, which one worker takes, are channels of the same rows: a core then finds in its own cache what
/// it wrote there in the launch before, at the price of reading all weights.
void rows_first(Parts& s);

}  // namespace opfuse
