// Recognition from index maps alone:
//   data     [a0, depth*(a1/outputs) + i, stride*a2 + dilation*r + offset, stride*a3 + dilation*s + offset]
//   weights  [a1, i, r, s]
#include "cpu/pixels/pixel_view.hpp"

#include <algorithm>
#include <set>

#include "base/integers.hpp"

namespace opfuse {
namespace {

bool plain_axis(const IndexExpr& e, int axis) {
  return !e.dynamic && e.offset == Dim(0) && e.terms.size() == 1 && e.terms[0] == IndexTerm{1, axis, 1, 0};
}

bool constant_zero(const IndexExpr& e) { return !e.dynamic && e.offset == Dim(0) && e.terms.empty(); }

const Shape& shape_of(const Region& region, const Read& read) {
  return region.params[static_cast<size_t>(read.index)].type.shape;
}

bool is_f32(const Region& region, const Read& read) {
  return read.stage < 0 && region.params[static_cast<size_t>(read.index)].type.dtype == DType::f32;
}

/// The product's operands; the data may be guarded by zero.
bool find_operands(const Stage& stage, PixelView& view) {
  if (stage.reductions.size() != 1 || stage.reductions[0].kind != ReduceKind::sum) return false;
  const Expr& e = stage.reductions[0].value;
  if (e.op() != ExprOp::mul || e.dtype() != DType::f32 || e.args()[1].op() != ExprOp::read) return false;
  view.weights = e.args()[1].index();
  Expr x = e.args()[0];
  if (x.op() == ExprOp::select) {
    const auto& args = x.args();
    if (args[0].op() != ExprOp::in_bounds || !args[2].is_constant() || args[2].value() != 0) return false;
    if (args[1].op() != ExprOp::read || args[1].index() != args[0].index()) return false;
    x = args[1];
  }
  if (x.op() != ExprOp::read) return false;
  view.data = x.index();
  return view.data != view.weights;
}

/// stride * domain axis + dilation * reduce axis + offset
bool find_sliding(const Stage& stage, const IndexExpr& e, int axis, const Dim& extent, SlidingDim& s, int64_t& taps) {
  if (e.dynamic || !e.offset.is_constant() || !extent.is_constant()) return false;
  s.axis = -1;
  s.offset = *e.offset.constant();
  s.extent = extent;
  for (const IndexTerm& t : e.terms) {
    const auto coef = t.coef.constant();
    if (!(t.div == Dim(1)) || !(t.mod == Dim(0)) || coef.value_or(0) <= 0) return false;
    const bool domain = t.axis == axis;
    if (!domain && (t.axis < 4 || s.tap >= 0)) return false;
    (domain ? s.axis : s.tap) = t.axis;
    (domain ? s.stride : s.dilation) = *coef;
  }
  if (s.axis < 0) return false;
  const auto count = s.tap < 0 ? std::optional<int64_t>(1) : axis_extent(stage, s.tap).constant();
  taps = count.value_or(0);
  return count.has_value();
}

bool find_channels(const Stage& stage, const IndexExpr& e, const Shape& data, PixelView& view) {
  const auto all = stage.domain[1].constant(), channels = data[1].constant();
  if (e.dynamic || !(e.offset == Dim(0)) || !all || !channels) return false;
  int64_t coef = 0;
  view.outputs = *all;
  for (const IndexTerm& t : e.terms) {
    const auto c = t.coef.constant(), div = t.div.constant();
    if (!c || !div || !(t.mod == Dim(0))) return false;
    if (t.axis == 1) {
      view.outputs = *div;
      coef = *c;
    } else if (t.axis >= 4 && *c == 1 && *div == 1 && view.channel < 0) {
      view.channel = t.axis;
    } else {
      return false;
    }
  }
  if (view.outputs <= 0 || *all % view.outputs != 0) return false;
  view.groups = *all / view.outputs;
  const auto depth = view.channel < 0 ? std::optional<int64_t>(1) : axis_extent(stage, view.channel).constant();
  view.depth = depth.value_or(0);
  return depth && (coef == 0 || coef == view.depth) && (coef != 0 || view.groups == 1) && view.channels() == *channels;
}

/// [o, channel, row tap, column tap]; an axis of extent 1 may be left out.
bool weights_match(const IndexMap& map, const PixelView& view) {
  const int axes[] = {1, view.channel, view.rows.tap, view.columns.tap};
  if (map.dims.size() != 4) return false;
  for (size_t d = 0; d < 4; ++d)
    if (axes[d] < 0 ? !constant_zero(map.dims[d]) : !plain_axis(map.dims[d], axes[d])) return false;
  return true;
}

}  // namespace

std::optional<PixelView> view_pixels(const Region& region) {
  if (region.stages.size() != 1) return std::nullopt;
  const Stage& stage = region.stages[0];
  PixelView view;
  if (stage.domain.size() != 4 || !find_operands(stage, view)) return std::nullopt;
  const Read& data = stage.reads[static_cast<size_t>(view.data)];
  const Read& weights = stage.reads[static_cast<size_t>(view.weights)];
  if (!is_f32(region, data) || !is_f32(region, weights) || data.map.dims.size() != 4) return std::nullopt;
  const Shape& shape = shape_of(region, data);
  if (!plain_axis(data.map.dims[0], 0) || !find_channels(stage, data.map.dims[1], shape, view)) return std::nullopt;
  if (!find_sliding(stage, data.map.dims[2], 2, shape[2], view.rows, view.row_taps)) return std::nullopt;
  if (!find_sliding(stage, data.map.dims[3], 3, shape[3], view.columns, view.column_taps)) return std::nullopt;
  if (!weights_match(weights.map, view)) return std::nullopt;
  for (const StageOutput& o : stage.outputs)
    if (!(o.map == IndexMap::identity(4))) return std::nullopt;
  const size_t known = (view.channel >= 0) + (view.rows.tap >= 0) + (view.columns.tap >= 0);
  if (known != stage.reduce.size()) return std::nullopt;
  const auto height = stage.domain[2].constant(), width = stage.domain[3].constant();
  if (!height || !width) return std::nullopt;
  view.height = *height;
  view.width = *width;
  return view;
}

std::vector<int64_t> phases(const SlidingDim& dim, int64_t taps) {
  std::set<int64_t> used;
  for (int64_t tap = 0; tap < taps; ++tap) used.insert(tap * dim.dilation % dim.stride);
  return {used.begin(), used.end()};
}

TapPlace place_of_tap(const SlidingDim& dim, int64_t taps, int64_t tap) {
  const std::vector<int64_t> used = phases(dim, taps);
  const int64_t at = tap * dim.dilation;
  return {std::find(used.begin(), used.end(), at % dim.stride) - used.begin(), at / dim.stride};
}

PixelPacking pack_pixels(const PixelView& view, int64_t lanes, int64_t bands, bool all_groups) {
  PixelPacking p;
  const SlidingDim &r = view.rows, &c = view.columns;
  p.lanes = lanes;
  p.band_rows = ceil_of(view.height, bands);
  const int64_t rows = (p.band_rows - 1) * r.stride + (view.row_taps - 1) * r.dilation + 1;
  p.phase_rows = ceil_of(rows, r.stride);
  const int64_t needed = (view.width - 1) * c.stride + (view.column_taps - 1) * c.dilation + 1;
  // zeros right of a row are those left of the next one
  const int64_t left = std::max<int64_t>(0, -c.offset), right = needed - left - c.extent.value();
  const int64_t shared = c.stride == 1 ? std::max<int64_t>(0, std::min(left, right)) : 0;
  p.pitch = std::max(view.width, ceil_of(needed, c.stride) - shared);
  p.row_vectors = ceil_of(p.pitch + shared, lanes);
  p.plane = p.phase_rows * p.pitch + p.row_vectors * lanes - p.pitch;
  p.row_phases = static_cast<int64_t>(phases(r, view.row_taps).size());
  p.column_phases = static_cast<int64_t>(phases(c, view.column_taps).size());
  p.channel = p.plane * p.row_phases * p.column_phases;
  p.packed_channels = (all_groups ? ceil_of(view.channels(), lanes) : ceil_of(view.depth - 1, lanes) + 1) * lanes;
  p.stage_pitch = ((p.band_rows - 1) * p.pitch + view.width + lanes - 1) / lanes * lanes + lanes;
  p.stage_outputs = ceil_of(view.all_outputs(), lanes) * lanes;
  return p;
}

int64_t result_vectors(const PixelView& view, const PixelPacking& packing, int64_t rows) {
  return ceil_of((rows - 1) * packing.pitch + view.width, packing.lanes);
}

}  // namespace opfuse
