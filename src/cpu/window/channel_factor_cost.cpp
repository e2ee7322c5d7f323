#include "cpu/window/channel_factor_cost.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/integers.hpp"
#include "cpu/contraction/packed_weights.hpp"
#include "cpu/schedule_parts.hpp"

namespace opfuse {
namespace {

/// Of one image.
ChannelFactorCost channel_factor_cost(const Region& region, const ContractionView& view, const TargetInfo& target) {
  const Stage& stage = region.stages[0];
  const auto extent = [&](int axis) { return axis_extent(stage, axis).constant().value_or(1); };
  const int64_t images = images_of(stage, view), outputs = extent(view.vec), depth = channel_depth(stage, view);
  int64_t pixels = 1;
  for (const Dim& d : stage.domain) pixels *= d.constant().value_or(1);
  pixels /= std::max<int64_t>(images * outputs, 1);
  ChannelFactorCost cost;
  const int64_t work = work_of(stage) / images, wanted = wanted_parts(static_cast<double>(work), target);
  cost.parts = std::clamp<int64_t>(pixels / target.kernels.packed_rows, 1, wanted);
  cost.saved = 8.0 * static_cast<double>(depth * pixels) / target.rates.products;
  const auto vectors = static_cast<double>(depth * ceil_of(outputs, target.lanes_f32()));
  cost.scaling = static_cast<double>(cost.parts) * vectors * target.kernels.scaled_vector +
                 4 * static_cast<double>(depth * outputs) / target.rates.scaled_weights;
  return cost;
}

}  // namespace

std::optional<std::string> channel_factor_loses(const Region& region, const TargetInfo& target) {
  const auto found = view_contraction(region, 0);
  if (const auto* why = std::get_if<std::string>(&found)) return *why;
  const auto& view = std::get<ContractionView>(found);
  if (view.factor < 0) return "the factor is none of the weights: not one per input channel, or the data is padded";
  if (!packs_weights(region, view)) return "too few pixels share the weights";
  const ChannelFactorCost cost = channel_factor_cost(region, view, target);
  if (cost.saved > cost.scaling) return std::nullopt;
  return fmt::format(
      "the gated map would save {:.1f} kilocycles, against {:.1f} for weights scaled in each of {} parts",
      cost.saved / 1e3, cost.scaling / 1e3, cost.parts);
}

}  // namespace opfuse
