#include "cpu/winograd/winograd.hpp"

#include "base/integers.hpp"
#include "region/single_stage.hpp"
#include "tensor/winograd.hpp"

namespace opfuse {
namespace {

/// The axis that dimension `dim` of a map is, -1 when it is not exactly one.
int axis_at(const IndexMap& map, size_t dim) {
  const IndexExpr& e = map.dims[dim];
  return e.terms.size() == 1 ? e.terms[0].axis : -1;
}

const SlidingDim* sliding_of(const ContractionView& view, int tap) {
  for (const SlidingDim& d : view.sliding)
    if (d.tap == tap) return &d;
  return nullptr;
}

std::string unfit(const Stage& stage, const SlidingDim* d) {
  if (!d || d->axis < 0) return "the window slides along one axis only";
  if (d->stride != 1 || d->dilation != 1) return "stride or dilation";
  if (!axis_extent(stage, d->axis).is_constant() || !d->extent.is_constant()) return "symbolic image extents";
  return "";
}

bool is_weight_constant(const Region& region, const Read& read) {
  return read.stage < 0 && region.params[static_cast<size_t>(read.index)].role == ParamRole::constant;
}

}  // namespace

std::variant<WinogradView, std::string> view_winograd(const Region& region, int index) {
  if (!is_single_stage(region)) return "several stages in one kernel";
  auto found = view_products(region, index);
  const auto* products = std::get_if<ContractionView>(&found);
  if (!products || products->types.sum != DType::i32) found = view_contraction(region, index);
  if (auto* why = std::get_if<std::string>(&found)) return std::move(*why);
  WinogradView view;
  view.contraction = std::get<ContractionView>(std::move(found));
  const ContractionView& c = view.contraction;
  const Stage& stage = region.stages[static_cast<size_t>(index)];
  const Read& weights = stage.reads[static_cast<size_t>(c.weights)];
  if (stage.reads[static_cast<size_t>(c.data)].stage >= 0) return "the data is not a tensor in memory";
  if (!is_weight_constant(region, weights)) return "the weights are not constant";
  if (c.taps.size() != 2 || weights.map.dims.size() != 4) return "not two-dimensional";
  if (c.channel < 0 || c.weights_vec_dim != 0 || c.weights_channel_dim != 1) return "the weights are not [O,C,3,3]";
  const int row_tap = axis_at(weights.map, 2), column_tap = axis_at(weights.map, 3);
  for (int tap : {row_tap, column_tap})
    if (tap < 0 || !(axis_extent(stage, tap) == Dim(3))) return "the filter is not 3x3";
  const SlidingDim *row = sliding_of(c, row_tap), *column = sliding_of(c, column_tap);
  for (const SlidingDim* d : {row, column})
    if (std::string why = unfit(stage, d); !why.empty()) return why;
  if (!axis_extent(stage, c.vec).is_constant() || channel_depth(stage, c) == 0) return "symbolic channels";
  for (const SlidingDim& d : c.sliding)
    if (d.tap < 0 && (d.stride != 1 || d.offset != 0)) return "padded or strided without a filter";
  view.row = *row;
  view.column = *column;
  for (int a = 0; a < static_cast<int>(stage.domain.size()); ++a)
    if (a != c.vec && a != row->axis && a != column->axis) view.batch.push_back(a);
  return view;
}

Layout winograd_weights(const WinogradView& view, const WinogradTile& tile, int64_t vectors, const TargetInfo& target) {
  Layout layout;
  layout.order = {0, 2, 3, 1};
  layout.blocks = {{0, vectors * target.lanes_f32()}};
  if (view.codes()) layout.blocks.push_back({1, winograd_unit(true)});
  layout.tile_h = tile.h;
  layout.tile_w = tile.w;
  return layout;
}

WinogradScratch winograd_scratch(const WinogradTile& tile, int64_t channel_vectors, bool codes, int64_t block,
                                 int64_t capacity, const TargetInfo& target) {
  const int64_t lanes = target.lanes_f32(), line = target.line_floats();
  const int64_t points = winograd::points(tile.h) * winograd::points(tile.w);
  WinogradScratch s;
  // a cache line more than needed: neighbouring points do not fall into one set of L1
  s.data_point = channel_vectors * lanes / winograd_unit(codes) * capacity + line;
  s.sum_point = capacity * block + line;
  for (const int64_t floats : {lanes, points * s.data_point, points * s.sum_point, tile.h * tile.w * lanes})
    s.bytes += ceil_of(floats, line) * line * 4;
  return s;
}

}  // namespace opfuse
