#include "cpu/contraction/gate_cost.hpp"

#include <fmt/format.h>

#include "base/fail.hpp"
#include "cpu/contraction/register_tile.hpp"
#include "cpu/memory_rates.hpp"

namespace opfuse {
namespace {

/// Rows of the products; all outer axes together, since rows lie behind each other.
int64_t rows_of(const Stage& stage, const ContractionView& view) {
  int64_t rows = pixel_count(stage, view.pixel);
  for (int axis : view.outer) rows *= axis_extent(stage, axis).constant().value_or(1);
  return rows;
}

}  // namespace

GateCost gate_cost(const Region& region, const TargetInfo& target) {
  const auto found = view_products(region, 0);
  OPFUSE_CHECK(std::holds_alternative<ContractionView>(found), "{}", std::get<std::string>(found));
  const auto& view = std::get<ContractionView>(found);
  const Stage& stage = region.stages[0];
  TileProblem one, all;
  one.types = view.types;
  one.channels = axis_extent(stage, view.vec).value();
  one.pixels = rows_of(stage, view);
  all = one;
  all.sums = view.sums();
  const auto sums = static_cast<double>(view.sums()), depth = static_cast<double>(channel_depth(stage, view));
  const auto cycles = [&](const TileProblem& p) { return depth * tile_cycles(p, choose_tile(p, target), target); };
  GateCost cost;
  cost.tile = cycles(all) - sums * cycles(one);
  const double bytes = static_cast<double>(view.types.result_bytes() * one.channels) * static_cast<double>(one.pixels);
  cost.saved = (sums - 1) * (2 * bytes / target.rates.maps + target.launch.cycles);
  return cost;
}

std::optional<std::string> gate_loses(const Region& region, const TargetInfo& target) {
  const GateCost cost = gate_cost(region, target);
  if (cost.pays()) return std::nullopt;
  return fmt::format(
      "what the first product stores would save {:.0f} kilocycles, against {:.0f} lost: register tiles that hold "
      "columns of both",
      cost.saved / 1e3, cost.tile / 1e3);
}

}  // namespace opfuse
