#include "cpu/window/chain_cost.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/fail.hpp"
#include "base/integers.hpp"
#include "cpu/contraction/overlap.hpp"
#include "cpu/contraction/register_tile.hpp"
#include "cpu/memory_rates.hpp"
#include "cpu/schedule_parts.hpp"
#include "cpu/window/chain_cut.hpp"
#include "expr/real_ops.hpp"

namespace opfuse {
namespace {

double constant_of(const Dim& d) { return static_cast<double>(d.constant().value_or(1)); }

double epilogue_cycles(const Stage& stage, const TargetInfo& target) {
  const double plain = 1.0 / static_cast<double>(target.fma_units);  // per vector
  double cycles = 0;
  for (const StageOutput& o : stage.outputs)
    o.value.visit([&](const Expr& e) {
      if (e.args().empty()) return;
      cycles += is_function(e.op()) ? target.kernels.chain_function : plain;
    });
  return cycles;
}

/// Multiply-adds and epilogue of one stage of one image, with the tile's cycles per step of the reduction.
double stage_cycles(const Stage& stage, double per_step, const TargetInfo& target) {
  double steps = 1;
  for (const Dim& d : stage.reduce) steps *= constant_of(d);
  double vectors = constant_of(stage.domain[1]) / static_cast<double>(target.lanes_f32());
  for (size_t d = 2; d < stage.domain.size(); ++d) vectors *= constant_of(stage.domain[d]);
  return steps * per_step + vectors * epilogue_cycles(stage, target);
}

double window_cycles(const Stage& stage, const TargetInfo& target) {
  double vectors = constant_of(stage.domain[1]) / static_cast<double>(target.lanes_f32());
  for (size_t d = 2; d < stage.domain.size(); ++d) vectors *= constant_of(stage.domain[d]);
  return stage_cycles(stage, vectors / 2, target);
}

/// Pixels of all rows may share register tiles.
bool pointwise(const Stage& stage, const ContractionView& view) {
  return !has_taps(stage, view) && std::all_of(view.sliding.begin(), view.sliding.end(),
                                               [](const SlidingDim& d) { return d.stride == 1 && d.offset == 0; });
}

/// Winograd computes 3x3 convolutions of enough channels; a chain would keep it from that.
bool has_algorithms(const Stage& stage, const ContractionView& view, const TargetInfo& target) {
  return has_taps(stage, view) && channel_depth(stage, view) >= target.lanes_f32();
}

}  // namespace

ChainCost chain_cost(const Region& region, const TargetInfo& target) {
  const auto found = view_chain(region);
  OPFUSE_CHECK(std::holds_alternative<ChainView>(found), "{}", std::get<std::string>(found));
  const auto& view = std::get<ChainView>(found);
  const Stage& first = region.stages[0];
  const int64_t channels = first.domain[1].value(), h = first.domain[2].value(), w = first.domain[3].value();
  const TileProblem row{channels, w, 1}, image{channels, h * w, 1};
  const RegisterTile tile = choose_tile(row, first, view.first, target);
  const double chained = stage_cycles(first, static_cast<double>(h) * tile_cycles(row, tile, target), target);
  double separate = chained;
  if (pointwise(first, view.first))
    separate = stage_cycles(first, tile_cycles(image, choose_tile(image, first, view.first, target), target), target);
  const ChainCut cut = cut_chain(region, view, tile.vectors, target);
  const double images = constant_of(first.domain[0]);
  ChainCost cost;
  cost.tile = chained - separate;
  cost.recomputed = (cut.recompute - 1) * chained;
  // half of it: the same launch may have one worker
  cost.unshared = (cut.imbalance - 1) / 2 * (chained + window_cycles(region.stages[1], target));
  cost.switching = target.kernels.chain_switch * static_cast<double>(work_of(first)) / images /
                   static_cast<double>(2 * target.lanes_f32());
  const auto bytes = static_cast<double>(4 * h * w * ceil_of(channels, target.lanes_f32()) * target.lanes_f32());
  const double rate = bytes > static_cast<double>(target.l3_bytes) ? target.rates.memory : target.rates.maps;
  // smaller maps stay with the core that wrote them: parts along channels gain on one L3 and lose on two
  if (bytes > static_cast<double>(target.l2_bytes)) cost.saved = 2 * bytes / rate;
  return cost;
}

std::optional<std::string> chain_loses(const Region& region, const TargetInfo& target) {
  const auto found = view_chain(region);
  const auto& view = std::get<ChainView>(found);
  if (has_algorithms(region.stages[0], view.first, target))
    return "the convolution has taps: other algorithms may compute it";
  const ChainCost cost = chain_cost(region, target);
  if (cost.pays()) return std::nullopt;
  return fmt::format(
      "the map between them would save {:.0f} kilocycles, against {:.0f} lost: register tiles row by row "
      "{:.0f}, rows computed twice {:.0f}, a worker that waits {:.0f}, switching between the two {:.0f}",
      cost.saved / 1e3, cost.lost() / 1e3, cost.tile / 1e3, cost.recomputed / 1e3, cost.unshared / 1e3,
      cost.switching / 1e3);
}

}  // namespace opfuse
