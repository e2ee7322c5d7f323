// Logical coordinates -> memory: index maps through layouts and strides, for a scalar or for W lanes
// that run along one axis of the iteration space.
#pragma once

#include <optional>
#include <vector>

#include "cpu/emit/kernel.hpp"
#include "kernel/interior.hpp"

namespace opfuse::cpu {

/// Where one axis of the iteration space stands. With `lanes`, lane l is at base + l.
struct AxisValue {
  Value* base = nullptr;
  bool lanes = false;
  int64_t multiple = 1;               ///< base is a multiple of this (0: base is the constant 0)
  int64_t plus = 0;                   ///< added to base; kept apart so that neighbours differ by a constant offset
  std::optional<AxisRange> interior;  ///< base and lanes lie in this interior (kernel/interior.hpp)
};

/// A point (or W points) of a stage's iteration space.
struct Env {
  int width = 1;
  std::vector<AxisValue> axes;  ///< domain axes, then reduce axes
  std::vector<Dim> extents;     ///< of the same axes
  Value* mask = nullptr;        ///< <W x i1>: lanes inside the domain; null when all are
  int64_t block = 1;            ///< lanes are visited in whole blocks of this, beyond the domain too
  int64_t tile = 1;             ///< points from here on along a nest's last axis (Level::tile)
  Value* strip = nullptr;       ///< points of all tiles from here on that one body makes (Level::strip)
};

/// Offset in elements from the operand's base.
struct Address {
  Value* scalar = nullptr;      ///< the uniform part
  std::optional<int64_t> step;  ///< lane l adds l * step; 0: all lanes share one element
  Value* lanes = nullptr;       ///< <W x i64> added to scalar when there is no constant step
  bool padded = false;          ///< lanes lie inside a block: all W exist in memory, in the domain or not
  int64_t constant = 0;         ///< added to scalar
};

/// Value of an integer expression over coords and reads, for dynamic indices.
using EmitIndex = std::function<Value*(const Expr&)>;

Address address_of(Kernel& k, const Operand& operand, const IndexMap& map, const Env& env, const EmitIndex& index);
/// i1 (scalar, or <W x i1>): the coordinates lie inside the operand's shape. Constant true when that is
/// known from the extents.
Value* inside(Kernel& k, const Operand& operand, const IndexMap& map, const Env& env, const EmitIndex& index);

/// Loads through an address; lanes outside `guard` or (unless padded) env.mask are not read and give 0.
Value* load(Kernel& k, const Operand& operand, const Address& address, const Env& env, Value* guard);
/// A value as memory holds it.
Value* to_memory(Kernel& k, DType dtype, Value* value);
/// Stores lanes inside env.mask; padding lanes of a block are stored as zero.
void store(Kernel& k, const Operand& operand, const Address& address, const Env& env, Value* value);

/// Elements between neighbours along an axis, within a block where its dimension is blocked.
Value* axis_step(Kernel& k, const Operand& operand, const IndexMap& map, int axis);

/// How the lanes of `axis` would lie: 0 uniform, 1 contiguous, n strided, nullopt: no constant step.
/// Assumes chunks that start at multiples of `width`.
struct LaneShape {
  std::optional<int64_t> step;
  bool padded = false;
};
LaneShape lane_shape(const Operand& operand, const IndexMap& map, int axis, int width);

}  // namespace opfuse::cpu
