// What every code generator asks about the reads of a stage.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "region/region.hpp"

namespace opfuse {

/// Reads that an expression mentions, as values or in guards.
std::set<int> reads_used(const Expr& e);

/// Reads whose in_bounds appears anywhere in the stage, and those at the same coordinates.
std::set<int> guarded_reads(const Stage& stage);

/// Whether the result may lie where the operand of a read lies: program/in_place.hpp gives results the memory of
/// operands of their size.
bool may_share_memory(const Region& region, const Read& read, const StageOutput& output);
/// Nothing that the kernel stores lies where the parameter lies: constants, and operands of other sizes than all
/// results.
bool never_written(const Region& region, int param);

/// The smallest and the largest value of a coordinate over all positions, as far as they are known.
struct CoordinateRange {
  std::optional<int64_t> low, high;
};
/// `extents` by axis: domain axes first, then reduce axes.
CoordinateRange coordinate_range(const IndexExpr& index, const std::vector<Dim>& extents);
/// All coordinates are known to lie in [0, size).
bool always_inside(const IndexExpr& index, const Dim& size, const std::vector<Dim>& extents);

/// Domain axes, then reduce axes.
std::vector<Dim> axis_extents(const Stage& stage);

}  // namespace opfuse
