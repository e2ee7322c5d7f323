// How operands and results of a group move while the lanes go along an axis, before layouts are known.
#pragma once

#include <vector>

#include "cpu/group_cost.hpp"

namespace opfuse {

/// same: all lanes share an element; next: neighbours; second: every second one; strided: further apart, a few in a
/// line; far: lines apart; single: element by element, wherever each of them is.
enum class Walk { same, next, second, strided, far, single };

/// An extent as a number: an open one counts as 1.
double extent_of(const Dim& d);

/// Whether the channels of a value of that shape can lie in blocks.
bool may_be_blocked(const Shape& shape);

/// Whether a coordinate moves with an axis.
bool depends(const Stage& stage, const IndexExpr& index, int axis);

class LaneWalks {
 public:
  static constexpr int64_t kShortestTurned = 4;  ///< elements across

  LaneWalks(const Stage& stage, const TargetInfo& target, LayoutGuess guess);

  /// Of an operand or a result of that shape.
  Walk of(const IndexMap& map, const Shape& shape, int axis) const;
  /// Another axis along which a strided operand lies one after the other: squares of both are turned in registers.
  bool turns(const IndexMap& map, const Shape& shape, int axis) const;

 private:
  const Stage& stage_;
  double lanes_, line_;
  LayoutGuess guess_;

  bool has_blocks(const Shape& shape) const;
  double stride_of(const Shape& shape, size_t dim) const;
  Walk along(const IndexExpr& index, double stride, int axis) const;
};

}  // namespace opfuse
