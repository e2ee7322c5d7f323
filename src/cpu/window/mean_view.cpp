#include "cpu/window/mean_view.hpp"

#include "kernel/reads.hpp"

namespace opfuse {
namespace {

bool is_axis(const IndexExpr& e, int axis) {
  return !e.dynamic && e.offset == Dim(0) && e.terms == std::vector<IndexTerm>{{1, axis}};
}

/// `axis` of the domain in steps of `step`, and `tap` within one.
bool is_step(const IndexExpr& e, int axis, int64_t step, int tap) {
  if (e.dynamic || !(e.offset == Dim(0))) return false;
  bool taps = false;
  for (const IndexTerm& t : e.terms) {
    const bool plain = t.div == Dim(1) && t.mod == Dim(0);
    if (!plain || !(t.coef == Dim(t.axis == tap ? 1 : step)) || (t.axis != tap && t.axis != axis)) return false;
    taps |= t.axis == tap;
  }
  return taps;
}

/// [n, c, band * rows + a4, a5] of the whole map.
bool covers(const Stage& bands, const Stage& map) {
  const Read& read = bands.reads[0];
  if (bands.domain.size() != 4 || bands.reduce.size() != 2 || map.domain.size() != 4) return false;
  for (const Dim& d :
       {bands.domain[2], bands.domain[3], bands.reduce[0], bands.reduce[1], map.domain[2], map.domain[3]})
    if (!d.is_constant()) return false;
  const int64_t rows = bands.reduce[0].value(), columns = bands.reduce[1].value();
  if (bands.domain[2].value() * rows != map.domain[2].value() || bands.domain[3] != Dim(1)) return false;
  return map.domain[3].value() == columns && is_axis(read.map.dims[0], 0) && is_axis(read.map.dims[1], 1) &&
         is_step(read.map.dims[2], 2, rows, 4) && is_step(read.map.dims[3], 3, columns, 5);
}

bool stores_in_place(const StageOutput& o) { return o.param >= 0 && o.map == IndexMap::identity(4); }

}  // namespace

std::optional<MeanView> view_means(const Region& region) {
  if (region.stages.size() < 2) return std::nullopt;
  MeanView view;
  view.bands = static_cast<int>(region.stages.size()) - 1;
  view.map = view.bands - 1;
  const Stage& bands = region.stages[static_cast<size_t>(view.bands)];
  const Stage& map = region.stages[static_cast<size_t>(view.map)];
  if (bands.reads.size() != 1 || bands.reductions.size() != 1 || bands.outputs.size() != 1) return std::nullopt;
  const Reduction& sum = bands.reductions[0];
  if (sum.kind != ReduceKind::sum || sum.value.op() != ExprOp::read || sum.value.dtype() != DType::f32)
    return std::nullopt;
  if (bands.reads[0].stage != view.map || !covers(bands, map)) return std::nullopt;
  if (!stores_in_place(bands.outputs[0]) || !reads_used(bands.outputs[0].value).empty()) return std::nullopt;
  view.kept = bands.reads[0].index;
  const StageOutput& kept = map.outputs[static_cast<size_t>(view.kept)];
  for (size_t i = 0; i < map.outputs.size(); ++i)
    if (stores_in_place(map.outputs[i]) && map.outputs[i].value == kept.value) view.stored = static_cast<int>(i);
  if (view.stored < 0) return std::nullopt;
  view.count = bands.domain[2].value();
  view.rows = bands.reduce[0].value();
  return view;
}

size_t stages_without_means(const Region& region) { return region.stages.size() - (view_means(region) ? 1 : 0); }

}  // namespace opfuse
