#include "cpu/contraction/overlap.hpp"

#include <algorithm>

#include "base/integers.hpp"
#include "expr/real_ops.hpp"

namespace opfuse {
namespace {

constexpr int64_t kFewRegisters = 5, kManyRegisters = 9;  ///< left to the chains

bool calls_functions(const Stage& stage) {
  bool found = false;
  for (const StageOutput& o : stage.outputs) o.value.visit([&](const Expr& e) { found |= is_function(e.op()); });
  return found;
}

/// The first tile stores what it has not computed yet, and once more what it has: nothing may be read from there.
bool reads_pixels(const Stage& stage, const ContractionView& view) {
  bool found = false;
  for (const StageOutput& o : stage.outputs)
    o.value.visit([&](const Expr& e) {
      if (e.op() != ExprOp::read) return;
      for (const IndexExpr& index : stage.reads[static_cast<size_t>(e.index())].map.dims) {
        found |= static_cast<bool>(index.dynamic);
        for (const IndexTerm& term : index.terms) found |= term.axis != view.vec;
      }
    });
  return found;
}

bool has_fixed_pixels(const Stage& stage, const ContractionView& view) {
  const int row = row_axis_of(view);
  return view.pixel >= 0 && axis_extent(stage, view.pixel).is_constant() &&
         (row < 0 || axis_extent(stage, row).is_constant());
}

}  // namespace

bool may_overlap(const Stage& stage, const ContractionView& view, const TargetInfo& target) {
  const bool clipped =
      std::any_of(stage.outputs.begin(), stage.outputs.end(), [](const StageOutput& o) { return o.clipped; });
  const bool plain = !clipped && view.phases.empty() && !has_taps(stage, view) && !view.guarded && !view.group_out &&
                     view.gates.empty() && view.factor < 0 && view.channel >= 0 && !view.coded;
  if (target.vector_registers < 32 || view.types.unit() > 1 || !plain || !has_fixed_pixels(stage, view)) return false;
  return channel_depth(stage, view) >= view.types.lanes(target) && calls_functions(stage) && !reads_pixels(stage, view);
}

double overlapped_cycles(const TileProblem& problem, int64_t depth, const RegisterTile& tile,
                         const TargetInfo& target) {
  const auto results =
      static_cast<double>(ceil_of(problem.channels, problem.types.lanes(target)) * problem.pixels * problem.rows);
  const KernelCosts& costs = target.kernels;
  const double saved = fits(tile, target, kManyRegisters) ? costs.overlap_many : costs.overlap_few;
  return static_cast<double>(depth) * tile_cycles(problem, tile, target) - saved * results;
}

std::optional<RegisterTile> overlapped_tile(const TileProblem& problem, int64_t depth, int64_t vectors,
                                            const TargetInfo& target) {
  std::optional<RegisterTile> best;
  double least = static_cast<double>(depth) * tile_cycles(problem, choose_tile(problem, target), target);
  for (int64_t v = vectors ? vectors : 1; v <= (vectors ? vectors : 4); ++v) {
    if (problem.channels % (v * problem.types.lanes(target))) continue;
    for (int64_t w = 1; w <= problem.pixels && fits({v, w}, target, kFewRegisters); ++w) {
      if (problem.pixels % w) continue;
      const double cycles = overlapped_cycles(problem, depth, {v, w}, target);
      if (cycles < least) least = cycles, best = {v, w};
    }
  }
  return best;
}

RegisterTile choose_tile(const TileProblem& problem, const Stage& stage, const ContractionView& view,
                         const TargetInfo& target) {
  const auto tile =
      may_overlap(stage, view, target) ? overlapped_tile(problem, channel_depth(stage, view), 0, target) : std::nullopt;
  return tile ? *tile : choose_tile(problem, target);
}

}  // namespace opfuse
