#include "cpu/contraction/direct_cost.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "base/integers.hpp"
#include "cpu/contraction/codes.hpp"
#include "cpu/contraction/register_tile.hpp"
#include "cpu/memory_rates.hpp"
#include "cpu/skeletons.hpp"

namespace opfuse {
namespace {

int64_t known(const Dim& d) { return d.constant().value_or(1); }

constexpr double kPairedOperations = 3.2;  ///< of four products of a lane: three, and their data put in order

double useful_share(const Stage& stage, const ContractionView& view) {
  double share = 1;
  for (const SlidingDim& d : view.sliding)
    if (view.guarded && d.axis >= 0 && d.tap >= 0 && d.extent.is_constant() && axis_extent(stage, d.axis).is_constant())
      share *= inside_share(d, known(axis_extent(stage, d.tap)), known(axis_extent(stage, d.axis)));
  return share;
}

ContractionView contraction_of(const Region& region) {
  auto found = view_products(region, 0);
  OPFUSE_CHECK(std::holds_alternative<ContractionView>(found), "{}", std::get<std::string>(found));
  return std::get<ContractionView>(std::move(found));
}

}  // namespace

double tiled_cycles(const Region& region, const Schedule& s, const TargetInfo& target) {
  const ContractionView view = contraction_of(region);
  const Stage& stage = region.stages[0];
  const int64_t channels = known(axis_extent(stage, view.vec)), row = row_axis_of(view);
  const int64_t group = view.group_out ? view.group_out : channels;
  TileProblem problem;
  problem.types = view.types;
  problem.channels = group;
  problem.grouped = view.group_out != 0;
  problem.pixels = view.pixel < 0 ? 1 : known(axis_extent(stage, view.pixel));
  problem.rows = row < 0 ? 1 : known(axis_extent(stage, row));
  double steps = static_cast<double>(ceil_of(channel_depth(stage, view), view.types.unit()) * ceil_of(channels, group));
  for (int tap : view.taps) steps *= static_cast<double>(known(axis_extent(stage, tap)));
  const RegisterTile tile{s.get("nv", 1), s.get("tile_w", 1)};
  if (s.get("paired", 0))
    steps *= kPairedOperations;
  else if (view.types.sum == DType::i32 && !has_byte_products(target))
    steps *= word_operations(tile);
  return tile_cycles(problem, tile, target) * steps * useful_share(stage, view);
}

/// Weights are read once per image: from memory, then from L2 if they stay there, or from L3. Parts of all images read
/// them once.
double direct_cycles(const Region& region, const Schedule& s, int64_t weight_bytes, const TargetInfo& target,
                     int64_t threads) {
  const ContractionView view = contraction_of(region);
  const Skeleton& skeleton = skeleton_of(s);
  OPFUSE_CHECK(skeleton.cost, "{} has no cost", skeleton.name);
  const int64_t images = images_of(region.stages[0], view);
  const int64_t pieces = std::min(images, s.get("parts_batch", images));
  const int64_t parts = pieces * s.get("parts_o", 1) * s.get("parts_p", 1);
  const double rounds = static_cast<double>(ceil_of(parts, threads)) / static_cast<double>(parts);
  const double compute = skeleton.cost(region, s, target) * static_cast<double>(images) * rounds;
  const auto bytes = static_cast<double>(weight_bytes);
  const double memory = memory_bytes_per_cycle(target, threads);
  double weights = bytes / memory;
  if (pieces > 1 && bytes > static_cast<double>(target.l2_bytes) * target.shares.weights) {
    const bool in_l3 = bytes <= static_cast<double>(target.l3_bytes) * target.shares.l3_weights;
    const double rate = in_l3 ? target.rates.l3_weights * static_cast<double>(threads) : memory;
    weights += static_cast<double>(pieces - 1) * bytes / rate;
  }
  return compute + target.kernels.exposed_weights * weights;
}

}  // namespace opfuse
