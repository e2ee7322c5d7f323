// How a contraction's axes are cut, from its schedule. Extents that are open are cut when the kernel runs (tiles.cpp).
#include "cpu/emit/contraction/plan.hpp"

#include "base/integers.hpp"
#include "cpu/contraction/decoded_weights.hpp"
#include "cpu/contraction/packed_weights.hpp"
#include "cpu/emit/contraction/widen_weights.hpp"

namespace opfuse::cpu {
namespace {

const SlidingDim* dim_along(int axis, const ContractionView& view) {
  const SlidingDim* found = nullptr;
  for (const SlidingDim& d : view.sliding)
    if (d.axis >= 0 && d.axis == axis) found = &d;
  return found;
}

const SlidingDim* leaving_pixels(const Stage& stage, const ContractionView& view) {
  const SlidingDim* d = dim_along(view.pixel, view);
  return d && view.guarded && may_leave(stage, *d) ? d : nullptr;
}

std::vector<int> batch_axes_of(const ContractionView& view) {
  std::vector<int> axes = view.outer;
  if (row_axis_of(view) >= 0) axes.pop_back();
  return axes;
}

/// What a part packs into scratch lies as a constant block does (packed_weights.hpp).
Operand weights_in_use(const ContractionPlan& plan) {
  if (widens_weights(plan)) return widened_weights(plan);
  Operand weights = plan.s.reads[static_cast<size_t>(plan.view.weights)];
  if (!plan.schedule.pack && plan.schedule.decode != static_cast<int64_t>(Decode::into_scratch)) return weights;
  const ParamLayout packed = packed_weights(plan.k.spec.region, plan.view, plan.block);
  weights.base = plan.k.scratch;
  weights.layout = packed.layout;
  weights.strides = packed.strides;
  return weights;
}

std::vector<TileRun> pixel_runs(const ContractionPlan& plan) {
  if (plan.band)
    return cut_band(plan.k, plan.band->begin, plan.band->count, plan.schedule.tile_w, plan.sums * plan.vectors);
  const Dim pixels = plan.view.pixel < 0 ? Dim(1) : axis_extent(plan.s.stage, plan.view.pixel);
  const SlidingDim* d = plan.pixel_dim;
  const int64_t taps = d && d->tap >= 0 ? plan.tap_count(d->tap) : 1;
  return cut_tiles(plan.k, pixels, plan.schedule.tile_w, d, taps, plan.sums * plan.vectors);
}

/// Rows of a chunk of a part, roughly where their number is open.
Dim rows_of_part(const ContractionPlan& plan) {
  const Dim rows = axis_extent(plan.s.stage, plan.row_axis), parts = int64_t{plan.schedule.parts_p};
  return min(Dim(int64_t{plan.schedule.chunk}), ceil_div(rows, parts));
}

Value* count_open_items(const ContractionPlan& plan) {
  if (!plan.runs.front().before) return nullptr;
  return plan.row_axis < 0 ? open_tile_count(plan.k, plan.runs) : plan.k.dim(rows_of_part(plan));
}

std::vector<TileRun> stacked_rows(const ContractionPlan& plan) {
  if (plan.schedule.tile_h <= 1) return {};
  const SlidingDim* d = plan.row_dim;
  return cut_tiles(plan.k, axis_extent(plan.s.stage, plan.row_axis), plan.schedule.tile_h,
                   plan.may_leave(*d) ? d : nullptr, d->tap >= 0 ? plan.tap_count(d->tap) : 1);
}

std::vector<Value*> places_of(const ContractionPlan& plan) {
  std::vector<Value*> places(
      static_cast<size_t>(plan.schedule.tile_w * plan.schedule.tile_h * plan.sums * plan.vectors));
  for (Value*& place : places) place = plan.k.variable(plan.product.sums);
  return places;
}

}  // namespace

ContractionPlan::ContractionPlan(Kernel& kernel, StageEmitter& stage, const ContractionView& seen,
                                 const ContractionSchedule& given, std::optional<PixelBand> some, int start)
    : k(kernel),
      s(stage),
      view(seen),
      schedule(given),
      band(some),
      bias(start),
      product(product_of(k, view)),
      lanes(view.types.lanes(k.target)),
      vectors(schedule.nv),
      block(vectors * lanes),
      sums(view.sums()),
      row_axis(row_axis_of(view)),
      batch_axes(batch_axes_of(view)),
      copies(schedule.copies ? data_copies(s.stage, view, schedule) : std::nullopt),
      pixel_dim(copies ? nullptr : leaving_pixels(s.stage, view)),
      row_dim(dim_along(row_axis, view)),
      scaled(view.factor >= 0 && schedule.pack != 0),
      weights(weights_in_use(*this)),
      runs(pixel_runs(*this)),
      open_items(count_open_items(*this)),
      row_runs(stacked_rows(*this)),
      matrix(schedule.matrix ? matrix_memory(*this) : MatrixMemory{}),
      places(schedule.matrix ? matrix_places(*this) : places_of(*this)),
      widened(widened_data(*this)) {}

const Operand& ContractionPlan::weights_of(int64_t sum) const {
  return sum ? s.reads[static_cast<size_t>(view.gates[static_cast<size_t>(sum - 1)])] : weights;
}

Value* ContractionPlan::weights_step() const {
  if (product.unit > 1) return k.i64(block);
  return view.channel < 0 ? k.i64(0) : axis_step(k, weights, map_of(view.weights), view.channel);
}

const SlidingDim* ContractionPlan::sliding_of_tap(int tap) const {
  for (const SlidingDim& d : view.sliding)
    if (d.tap == tap) return &d;
  return nullptr;
}

int64_t ContractionPlan::blocks() const { return ceil_of(channels(), block); }

Dim ContractionPlan::items() const {
  if (schedule.tile_h > 1) return Dim(tile_count(row_runs));
  if (row_axis >= 0) return axis_extent(s.stage, row_axis);
  return view.pixel < 0 || axis_extent(s.stage, view.pixel).is_constant() ? Dim(tile_count(runs)) : Dim(1);
}

int64_t ContractionPlan::blocks_per_part() const { return ceil_of(blocks(), int64_t{schedule.parts_o}); }

int64_t ContractionPlan::items_per_part() const { return ceil_of(items().value(), int64_t{schedule.parts_p}); }

int64_t ContractionPlan::passes() const { return ceil_of(depth(), int64_t{schedule.k_block}); }

}  // namespace opfuse::cpu
