#include "cpu/contraction/packed_weights.hpp"

#include "cpu/contraction/register_tile.hpp"
#include "region/single_stage.hpp"

namespace opfuse {
namespace {

constexpr int64_t kFewestRows = 4;  // packing costs about as much as two rows of products

/// The axis that alone indexes a dimension of the weights, -1: none.
int axis_of(const IndexExpr& e) { return e.terms.size() == 1 ? e.terms[0].axis : -1; }

bool is_constant(const Region& region, const Read& weights) {
  return region.params[static_cast<size_t>(weights.index)].role == ParamRole::constant;
}

}  // namespace

bool packs_weights(const Region& region, const ContractionView& view) {
  const Stage& stage = region.stages[0];
  const Read& weights = stage.reads[static_cast<size_t>(view.weights)];
  if (!is_single_stage(region) || weights.stage >= 0) return false;
  if (is_constant(region, weights) && view.factor < 0) return false;
  if (view.group_out || view.pixel < 0 || view.channel < 0) return false;
  const int row = row_axis_of(view);
  for (const IndexExpr& e : weights.map.dims)
    if (row >= 0 && axis_of(e) == row) return false;  // other weights for every row of a part
  return axis_extent(stage, view.pixel).constant().value_or(kFewestRows) >= kFewestRows || row >= 0;
}

ParamLayout packed_weights(const Region& region, const ContractionView& view, int64_t block) {
  const Stage& stage = region.stages[0];
  const Read& weights = stage.reads[static_cast<size_t>(view.weights)];
  ParamLayout packed{Layout::dense(weights.map.dims.size()), {}};
  packed.layout.blocks.push_back({view.weights_vec_dim, block});
  packed.strides.assign(weights.map.dims.size(), 0);
  Dim stride = block;
  const auto place = [&](size_t dim, int axis) {
    packed.strides[dim] = stride;
    stride = stride * axis_extent(stage, axis);
  };
  place(static_cast<size_t>(view.weights_channel_dim), view.channel);
  for (int tap : view.taps)
    for (size_t d = 0; d < weights.map.dims.size(); ++d)
      if (axis_of(weights.map.dims[d]) == tap) {
        place(d, tap);
        break;
      }
  packed.strides.push_back(1);
  return packed;
}

int64_t packed_bytes(const Stage& stage, const ContractionView& view, int64_t block) {
  int64_t count = view.types.weight_bytes() * block * channel_depth(stage, view);
  for (int tap : view.taps) count *= axis_extent(stage, tap).value();
  return count;
}

int64_t packed_vectors(const Stage& stage, const ContractionView& view, int64_t rows, const TargetInfo& target) {
  TileProblem problem;
  problem.types = view.types;
  problem.channels = axis_extent(stage, view.vec).value();
  problem.pixels = pixel_count(stage, view.pixel);
  problem.rows = rows;
  int64_t vectors = choose_tile(problem, target).vectors;
  const auto room = static_cast<int64_t>(target.shares.packed_weights * static_cast<double>(target.l2_bytes));
  while (vectors > 1 && packed_bytes(stage, view, vectors * view.types.lanes(target)) > room) --vectors;
  return vectors;
}

}  // namespace opfuse
