// With --measure, groups that the cost model made are timed against the kernels they replace, in the whole program, and
// those that are slower are taken apart. Times are kept in a file (tune/timing_cache.hpp).
#pragma once

#include <string>
#include <vector>

#include "driver/pipeline.hpp"
#include "driver/shape_for_target.hpp"

namespace opfuse {

struct GroupMeasuring {
  const TargetInfo& target;
  ShapeOptions shaping;
  LowerOptions lowering;
  SymbolValues later;                ///< sizes that are bound after the plan is applied
  std::vector<std::string> timings;  ///< files: the first is read and written, others are read; empty: the default
};

/// Sets `apply` to false, with the times as the reason, where a group of the rules is slower than its nodes apart: the
/// 95 % interval of the ratio lies above 1.01. Returns a line that says what was measured, and what was known before.
/// E::bad_option where dimensions are open.
std::string measure_groups(const Graph& prepared, FusionPlan& plan, const GroupMeasuring& how);

}  // namespace opfuse
