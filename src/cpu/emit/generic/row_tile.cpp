#include "cpu/emit/generic/row_tile.hpp"

#include <algorithm>
#include <set>

#include "expr/real_ops.hpp"
#include "region/dependence.hpp"

namespace opfuse::cpu {
namespace {

constexpr int64_t kTileBytes = 24 << 10;  // rows at once stay in L1 from one reduction to the next
constexpr size_t kCheapReduction = 12;    // nodes: beyond, a row has enough work of its own
constexpr int64_t kStoreStreams = 8;      // Sapphire Rapids, three results: 24 streams 24 us, 6 streams 18 us

int64_t row_bytes(const Stage& stage) {
  int64_t bytes = 4;
  for (const Dim& d : stage.reduce) bytes *= d.constant().value_or(1);
  return bytes;
}

/// Functions of the elements themselves, not of a row's sums, which are the same for all of its points.
bool calls_functions(const Stage& stage, const std::vector<int>& inner) {
  bool found = false;
  for (const StageOutput& o : stage.outputs)
    o.value.visit([&](const Expr& e) {
      if (!is_function(e.op()) || e.op() == ExprOp::erf) return;
      const std::set<int> axes = axes_of(stage, e);
      found |= std::any_of(inner.begin(), inner.end(), [&](int axis) { return axes.contains(axis); });
    });
  return found;
}

}  // namespace

int64_t rows_at_once(const Kernel& k, const Stage& stage, const NestPlan& plan) {
  if (plan.reduce_lane < 0 || plan.rows.empty() || plan.rows.back() == plan.lane_axis) return 1;
  size_t nodes = 0;
  for (const Reduction& r : stage.reductions) r.value.visit([&](const Expr&) { ++nodes; });
  if (nodes > kCheapReduction * stage.reductions.size()) return 1;
  const int64_t in_flight = k.target.multiply_adds_in_flight();
  const int64_t most = stage.domain[static_cast<size_t>(plan.rows.back())].constant().value_or(in_flight);
  const int64_t limit = std::min({in_flight, k.target.vector_registers / int64_t{4}, most, int64_t{plan.reduce_width}});
  int64_t rows = 1;
  while (2 * rows <= limit && 2 * rows * row_bytes(stage) <= kTileBytes) rows *= 2;
  return rows;
}

int64_t rows_stored_at_once(const StageEmitter& s, const NestPlan& plan, int64_t rows) {
  if (plan.reduce_lane < 0 || calls_functions(s.stage, plan.inner)) return rows;
  const int64_t results = std::count_if(s.outputs.begin(), s.outputs.end(), [](const Operand& o) { return o.base; });
  // what is stored lies in L1 beside what is read
  while (rows > 1 && (rows * results > kStoreStreams || 2 * rows * row_bytes(s.stage) > kTileBytes)) rows /= 2;
  return rows;
}

}  // namespace opfuse::cpu
