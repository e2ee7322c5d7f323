// What a group costs as one launch, before layouts and schedules are known: the question of a planner, which asks it of
// groups joined and apart.
#pragma once

#include "region/region.hpp"
#include "target/target.hpp"

namespace opfuse {

/// How values of four dimensions are assumed to lie.
enum class LayoutGuess { dense, channel_blocks };

struct GroupCost {
  double cycles = 0;  ///< of one core, the launch included; an open extent counts as 1
  double bytes = 0;   ///< operands and results, each once
  double work = 0;    ///< cycles of instructions alone
  double memory = 0;  ///< cycles of bytes alone
};

GroupCost group_cost(const Region& region, const TargetInfo& target, LayoutGuess guess);
/// Whether the guess makes a difference.
bool lies_in_blocks(const Region& region);

/// Bytes in a cycle, from the level that holds so many of a group.
double rate_of(double bytes, const TargetInfo& target);

/// Cycles as microseconds of the target.
double microseconds(double cycles, const TargetInfo& target);

}  // namespace opfuse
