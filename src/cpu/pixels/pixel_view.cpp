// Recognition from index maps alone:
//   data     [a0, depth*(a1/outputs) + i, .., stride*p + dilation*r + offset, stride*q + dilation*s + offset]
//   weights  [a1, i, .., r, s], of a transposed convolution [a1, i, .., count*r + phase - missing, ..]
//   result   [a0, a1, .., p, q], of a transposed convolution [a0, a1, .., count*p - phase + first, ..]
#include "cpu/pixels/pixel_view.hpp"

#include <algorithm>
#include <set>

#include "base/integers.hpp"
#include "cpu/cache_sets.hpp"
#include "region/read_shape.hpp"
#include "region/single_stage.hpp"

namespace opfuse {
namespace {

bool plain_axis(const IndexExpr& e, int axis) {
  return !e.dynamic && e.offset == Dim(0) && e.terms.size() == 1 && e.terms[0] == IndexTerm{1, axis, 1, 0};
}

bool constant_zero(const IndexExpr& e) { return !e.dynamic && e.offset == Dim(0) && e.terms.empty(); }

bool is_f32(const Region& region, const Read& read) {
  return read.stage < 0 && region.params[static_cast<size_t>(read.index)].type.dtype == DType::f32;
}

/// A read, perhaps zero where it leaves its tensor.
int read_or_zero(const Expr& e) {
  if (e.op() == ExprOp::read) return e.index();
  if (e.op() != ExprOp::select) return -1;
  const auto& args = e.args();
  if (args[0].op() != ExprOp::in_bounds || !args[2].is_constant() || args[2].value() != 0) return -1;
  return args[1].op() == ExprOp::read && args[1].index() == args[0].index() ? args[1].index() : -1;
}

bool find_operands(const Stage& stage, PixelView& view) {
  if (stage.reductions.size() != 1 || stage.reductions[0].kind != ReduceKind::sum) return false;
  const Expr& e = stage.reductions[0].value;
  if (e.op() != ExprOp::mul || e.dtype() != DType::f32) return false;
  view.data = read_or_zero(e.args()[0]);
  view.weights = read_or_zero(e.args()[1]);
  return view.data >= 0 && view.weights >= 0 && view.data != view.weights;
}

/// stride * domain axis + dilation * reduce axis + offset
bool find_sliding(const Stage& stage, const IndexExpr& e, int axis, const Dim& extent, PixelDim& s) {
  if (e.dynamic || !e.offset.is_constant() || !extent.is_constant()) return false;
  s.axis = -1;
  s.offset = *e.offset.constant();
  s.extent = extent;
  for (const IndexTerm& t : e.terms) {
    const auto coef = t.coef.constant();
    if (!(t.div == Dim(1)) || !(t.mod == Dim(0)) || coef.value_or(0) <= 0) return false;
    const bool domain = t.axis == axis;
    if (!domain && (t.axis < static_cast<int>(stage.domain.size()) || s.tap >= 0)) return false;
    (domain ? s.axis : s.tap) = t.axis;
    (domain ? s.stride : s.dilation) = *coef;
  }
  const auto positions = axis_extent(stage, axis).constant();
  if (s.axis < 0 || !positions) return false;
  s.positions = *positions;
  const auto count = s.tap < 0 ? std::optional<int64_t>(1) : axis_extent(stage, s.tap).constant();
  s.taps = count.value_or(0);
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
    } else if (t.axis >= static_cast<int>(stage.domain.size()) && *c == 1 && *div == 1 && view.channel < 0) {
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

/// count * tap + phase - missing, at most the last element of `extent`; without phases the tap (none: 0).
bool find_phases(const Stage& stage, const IndexExpr& e, int first_position, const Dim& extent, PixelDim& d) {
  const auto offset = e.offset.constant();
  if (e.dynamic || !offset || *offset > 0) return false;
  int64_t tap_step = 0;
  for (const IndexTerm& t : e.terms) {
    const auto coef = t.coef.constant();
    if (!coef || !(t.div == Dim(1)) || !(t.mod == Dim(0))) return false;
    if (t.axis == d.tap) {
      tap_step = *coef;
    } else if (t.axis >= 2 && t.axis < first_position && d.phases.axis < 0 && *coef == 1) {
      d.phases.axis = t.axis;
    } else {
      return false;
    }
  }
  const auto count = d.phases.axis < 0 ? std::optional<int64_t>(1) : axis_extent(stage, d.phases.axis).constant();
  d.phases.count = count.value_or(0);
  d.phases.missing = -*offset;
  if (!count || (d.tap >= 0 && tap_step != *count) || d.phases.missing >= *count) return false;
  return extent.is_constant() && *count * d.taps - d.phases.missing <= extent.value();
}

/// count * position - phase + first
bool find_results(const IndexExpr& e, const Dim& extent, PixelDim& d) {
  const auto first = e.offset.constant();
  if (e.dynamic || !first || !extent.is_constant() || e.terms.size() != (d.phases.axis < 0 ? 1U : 2U)) return false;
  for (const IndexTerm& t : e.terms) {
    const bool position = t.axis == d.axis;
    if (!(t.div == Dim(1)) || !(t.mod == Dim(0)) || (!position && t.axis != d.phases.axis)) return false;
    if (!(t.coef == Dim(position ? d.phases.count : -1))) return false;
  }
  d.results = extent.value();
  d.phases.first = *first;
  const int64_t before = d.phases.before();
  return before >= 0 && before < d.phases.count && d.results <= d.positions * d.phases.count - before;
}

std::vector<PixelDim*> dims_of(PixelView& view, size_t spatial) {
  if (spatial == 3) return {&view.planes, &view.rows, &view.columns};
  return {&view.rows, &view.columns};
}

/// All results lie at the same coordinates [n, o, ..] of tensors alike in shape.
bool outputs_agree(const Stage& stage, size_t rank) {
  const StageOutput& first = stage.outputs.at(0);
  if (first.map.dims.size() != rank || !plain_axis(first.map.dims[0], 0) || !plain_axis(first.map.dims[1], 1))
    return false;
  return std::all_of(stage.outputs.begin(), stage.outputs.end(),
                     [&](const StageOutput& o) { return o.map == first.map && o.shape == first.shape && !o.combine; });
}

/// A coordinate of the result, in terms of it.
std::optional<IndexExpr> at_result(const IndexExpr& e, const IndexMap& result) {
  const bool spatial = std::any_of(e.terms.begin(), e.terms.end(), [](const IndexTerm& t) { return t.axis >= 2; });
  if (e.dynamic) return std::nullopt;
  if (!spatial) return e;
  for (size_t d = 2; d < result.dims.size(); ++d)
    if (e.terms == result.dims[d].terms)
      return IndexExpr{{{1, static_cast<int>(d)}}, e.offset - result.dims[d].offset, {}};
  return std::nullopt;
}

}  // namespace

std::optional<PixelView> view_pixels(const Region& region) {
  if (!is_single_stage(region)) return std::nullopt;
  const Stage& stage = region.stages[0];
  PixelView view;
  if (stage.domain.size() < 4 || stage.outputs.empty() || !find_operands(stage, view)) return std::nullopt;
  const Read& data = stage.reads[static_cast<size_t>(view.data)];
  const Read& weights = stage.reads[static_cast<size_t>(view.weights)];
  const size_t rank = data.map.dims.size();
  if (rank < 4 || rank > 5 || stage.domain.size() < rank || !is_f32(region, data) || !is_f32(region, weights) ||
      weights.map.dims.size() != rank || !outputs_agree(stage, rank))
    return std::nullopt;
  const Shape& shape = shape_read_by(region, data);
  if (!plain_axis(data.map.dims[0], 0) || !find_channels(stage, data.map.dims[1], shape, view)) return std::nullopt;
  if (!plain_axis(weights.map.dims[0], 1)) return std::nullopt;
  if (view.channel < 0 ? !constant_zero(weights.map.dims[1]) : !plain_axis(weights.map.dims[1], view.channel))
    return std::nullopt;
  const int first_position = static_cast<int>(stage.domain.size() - rank + 2);
  size_t known = view.channel >= 0, phase_axes = 0;
  const std::vector<PixelDim*> dims = dims_of(view, rank - 2);
  for (size_t s = 0; s < dims.size(); ++s) {
    PixelDim& d = *dims[s];
    if (!find_sliding(stage, data.map.dims[s + 2], first_position + static_cast<int>(s), shape[s + 2], d) ||
        !find_phases(stage, weights.map.dims[s + 2], first_position, shape_read_by(region, weights)[s + 2], d) ||
        !find_results(stage.outputs[0].map.dims[s + 2], stage.outputs[0].shape[s + 2], d))
      return std::nullopt;
    known += d.tap >= 0;
    phase_axes += d.phases.axis >= 0;
  }
  if (known != stage.reduce.size() || stage.domain.size() != rank + phase_axes) return std::nullopt;
  return view;
}

std::optional<Stage> result_stage(const Region& region, const PixelView& view) {
  const Stage& stage = region.stages[0];
  Stage result;
  const StageOutput& first = stage.outputs[0];
  result.domain = first.shape.dims;
  const bool moved = stage.domain.size() != result.domain.size() || first.clipped;
  std::set<int> used;
  bool coordinates = false;
  for (const StageOutput& output : stage.outputs) {
    result.outputs.push_back(output);
    result.outputs.back().map = IndexMap::identity(first.shape.rank());
    result.outputs.back().clipped = false;
    output.value.visit([&](const Expr& e) {
      if (e.op() == ExprOp::read || e.op() == ExprOp::in_bounds) used.insert(e.index());
      coordinates |= e.op() == ExprOp::coord;
    });
  }
  if (coordinates && moved) return std::nullopt;
  for (size_t r = 0; r < stage.reads.size(); ++r) {
    result.reads.push_back(stage.reads[r]);
    Read& read = result.reads.back();
    const auto index = static_cast<int>(r);
    if (index == view.data || index == view.weights) {
      if (used.contains(index)) return std::nullopt;
      continue;
    }
    if (!moved) continue;
    for (IndexExpr& e : read.map.dims) {
      const std::optional<IndexExpr> there = at_result(e, first.map);
      if (!there) return std::nullopt;
      e = *there;
    }
  }
  return result;
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
  p.band_rows = ceil_of(view.rows.positions, bands);
  const int64_t rows = (p.band_rows - 1) * r.stride + (view.rows.taps - 1) * r.dilation + 1;
  p.phase_rows = ceil_of(rows, r.stride);
  const int64_t needed = (view.columns.positions - 1) * c.stride + (view.columns.taps - 1) * c.dilation + 1;
  // zeros right of a row are those left of the next one
  const int64_t left = std::max<int64_t>(0, -c.offset), right = needed - left - c.extent.value();
  const int64_t shared = c.stride == 1 ? std::max<int64_t>(0, std::min(left, right)) : 0;
  p.pitch = std::max(view.columns.positions, ceil_of(needed, c.stride) - shared);
  p.row_vectors = ceil_of(p.pitch + shared, lanes);
  p.plane = p.phase_rows * p.pitch + p.row_vectors * lanes - p.pitch;
  p.row_phases = static_cast<int64_t>(phases(r, view.rows.taps).size());
  p.column_phases = static_cast<int64_t>(phases(c, view.columns.taps).size());
  p.channel = p.plane * p.row_phases * p.column_phases;
  p.plane_taps = view.planes.taps;
  p.packed_channels = (all_groups ? ceil_of(view.channels(), lanes) : ceil_of(view.depth - 1, lanes) + 1) * lanes;
  p.stage_pitch = ((p.band_rows - 1) * p.pitch + view.columns.positions + lanes - 1) / lanes * lanes + lanes;
  if (!view.plain() && share_a_set(p.stage_pitch * 4)) p.stage_pitch += lanes;  // not all in one set of a cache
  p.stage_outputs = ceil_of(view.all_outputs() * view.phases(), lanes) * lanes;
  return p;
}

int64_t result_vectors(const PixelView& view, const PixelPacking& packing, int64_t rows) {
  return ceil_of((rows - 1) * packing.pitch + view.columns.positions, packing.lanes);
}

}  // namespace opfuse
