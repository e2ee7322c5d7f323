// sum over taps of data[.., s*x + d*t + o, ..] * weights[t, ..]: one dimension of the data has the column and its tap,
// another may have the row and its tap, and the channel stands alone in all operands.
#include "cuda/depthwise_view.hpp"

#include <algorithm>

#include "cuda/mma_operands.hpp"
#include "cuda/skeletons.hpp"
#include "cuda/vector_body.hpp"
#include "region/single_stage.hpp"

namespace opfuse::cuda {
namespace {

constexpr int64_t kVector = 8;

/// The dimension that has `tap`, and the domain axis beside it.
struct Sliding {
  size_t dim;
  int axis;
  int64_t stride, dilation;
};
std::optional<Sliding> sliding_along(const Stage& stage, const IndexMap& map, int tap) {
  const auto domain = static_cast<int>(stage.domain.size());
  std::optional<Sliding> found;
  for (size_t d = 0; d < map.dims.size(); ++d) {
    const std::vector<IndexTerm>& terms = map.dims[d].terms;
    const auto has = [&](const IndexTerm& t) { return t.axis == tap; };
    if (std::none_of(terms.begin(), terms.end(), has)) continue;
    if (found || terms.size() != 2 || !map.dims[d].offset.is_constant()) return std::nullopt;
    const IndexTerm &t = terms[terms[0].axis == tap ? 0 : 1], &a = terms[terms[0].axis == tap ? 1 : 0];
    const auto stride = a.coef.constant(), dilation = t.coef.constant();
    if (a.axis >= domain || !stride || !dilation || *stride < 1 || *dilation < 1) return std::nullopt;
    found = Sliding{d, a.axis, *stride, *dilation};
  }
  return found;
}

bool all_plain(const IndexMap& map) {
  for (const IndexExpr& d : map.dims) {
    if (d.dynamic) return false;
    for (const IndexTerm& t : d.terms)
      if (!(t.div == Dim(1)) || !(t.mod == Dim(0))) return false;
  }
  return true;
}

std::optional<DepthwiseView> view_without_layouts(const Stage& stage) {
  if (stage.anchor != Anchor::window || stage.reductions.size() != 1 || stage.reduce.size() != 2) return std::nullopt;
  const Reduction& r = stage.reductions[0];
  if (r.kind != ReduceKind::sum || r.value.op() != ExprOp::mul || !is_half(r.value.dtype())) return std::nullopt;
  DepthwiseView view;
  view.data = mma_read(r.value.args()[0]);
  view.weights = mma_read(r.value.args()[1]);
  if (view.data < 0 || r.value.args()[1].op() != ExprOp::read) return std::nullopt;
  view.row_tap = static_cast<int>(stage.domain.size());
  view.column_tap = view.row_tap + 1;
  const IndexMap& map = stage.reads[static_cast<size_t>(view.data)].map;
  const auto column = sliding_along(stage, map, view.column_tap);
  if (!column || !sliding_along(stage, map, view.row_tap) || !all_plain(map)) return std::nullopt;
  const auto taps = stage.reduce[1].constant(), columns = stage.domain[static_cast<size_t>(column->axis)].constant();
  if (!taps || !columns || *taps > 16 || !stage.reduce[0].is_constant()) return std::nullopt;
  view.column = column->axis;
  view.column_dim = column->dim;
  view.stride = column->stride;
  view.dilation = column->dilation;
  view.taps = *taps;
  view.columns = *columns;
  return view;
}

}  // namespace

bool resembles_depthwise(const Region& region) {
  return is_single_stage(region) && view_without_layouts(region.stages[0]).has_value();
}

std::optional<DepthwiseView> view_depthwise(const Region& region, const std::vector<ParamLayout>& layouts) {
  const Stage& stage = region.stages[0];
  auto view = view_without_layouts(stage);
  if (!view) return std::nullopt;
  const auto domain = static_cast<int>(stage.domain.size()), axes = domain + static_cast<int>(stage.reduce.size());
  const auto lies = [&](int param, const IndexMap& map, int axis) {
    return is_half(region.params[static_cast<size_t>(param)].type.dtype) &&
           lies_together(map, layouts[static_cast<size_t>(param)], axes, axis, kVector);
  };
  const Read &data = stage.reads[static_cast<size_t>(view->data)],
             &weights = stage.reads[static_cast<size_t>(view->weights)];
  for (int axis = 0; axis < domain && view->channel < 0; ++axis) {
    const auto extent = stage.domain[static_cast<size_t>(axis)].constant();
    if (extent && *extent % kVector == 0 && lies(data.index, data.map, axis) && lies(weights.index, weights.map, axis))
      view->channel = axis;
  }
  if (view->channel < 0 || view->channel == view->column) return std::nullopt;
  for (const StageOutput& o : stage.outputs)
    if (o.clipped || (o.param >= 0 && !lies(o.param, o.map, view->channel))) return std::nullopt;
  for (const IndexExpr& d : weights.map.dims)  // the same for every column
    for (const IndexTerm& t : d.terms)
      if (t.axis == view->column) return std::nullopt;
  return view;
}

}  // namespace opfuse::cuda
