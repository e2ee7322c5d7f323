// What follows from a view: extents, depths, and expressions with their guards decided.
#include "kernel/views.hpp"

#include <algorithm>

#include "region/dependence.hpp"

namespace opfuse {

int64_t channel_depth(const Stage& stage, const ContractionView& view) {
  return view.channel < 0 ? 1 : axis_extent(stage, view.channel).constant().value_or(0);
}

int row_axis_of(const ContractionView& view) {
  if (view.outer.empty()) return -1;
  for (const SlidingDim& d : view.sliding)
    if (d.axis == view.outer.back() && d.dim > view.data_channel_dim) return d.axis;
  return -1;
}

bool has_taps(const Stage& stage, const ContractionView& view) {
  return std::any_of(view.taps.begin(), view.taps.end(),
                     [&](int tap) { return axis_extent(stage, tap).constant() != std::optional<int64_t>(1); });
}

bool is_empty(const Region& region) {
  const auto none = [](const Dim& extent) { return extent == Dim(0); };
  return std::any_of(region.stages.begin(), region.stages.end(), [&](const Stage& stage) {
    return std::any_of(stage.domain.begin(), stage.domain.end(), none) ||
           std::any_of(stage.reduce.begin(), stage.reduce.end(), none);
  });
}

int64_t images_of(const Stage& stage, const ContractionView& view) {
  int64_t images = 1;
  for (int axis : view.outer)
    if (axis != row_axis_of(view)) images *= axis_extent(stage, axis).constant().value_or(1);
  return images;
}

int row_axis_of(const WindowView& view) {
  if (view.outer.empty()) return -1;
  for (const SlidingDim& d : view.sliding)
    if (d.axis == view.outer.back() && d.tap >= 0) return d.axis;
  return -1;
}

const Dim& axis_extent(const Stage& stage, int axis) {
  const auto a = static_cast<size_t>(axis);
  return a < stage.domain.size() ? stage.domain[a] : stage.reduce[a - stage.domain.size()];
}

Expr assume_inside(const Expr& e, int read, bool inside) {
  if (e.op() == ExprOp::select && e.args()[0].op() == ExprOp::in_bounds && e.args()[0].index() == read)
    return assume_inside(e.args()[inside ? 1 : 2], read, inside);
  if (e.args().empty()) {
    if (e.op() == ExprOp::in_bounds && e.index() == read) return Expr::integer(DType::boolean, inside);
    return e;
  }
  std::vector<Expr> args;
  for (const Expr& a : e.args()) args.push_back(assume_inside(a, read, inside));
  return rebuilt(e, std::move(args));
}

/// How many outputs p have p * stride + from in [0, extent); strides are positive (sliding_dims).
static int64_t inside_count(int64_t stride, int64_t from, int64_t extent, int64_t outputs) {
  const int64_t first = from < 0 ? (stride - 1 - from) / stride : 0;
  const int64_t end = from < extent ? (extent - 1 - from) / stride + 1 : 0;
  return std::max<int64_t>(0, std::min(outputs, end) - first);
}

double inside_share(const SlidingDim& d, int64_t taps, int64_t outputs) {
  int64_t inside = 0;
  for (int64_t r = 0; r < taps; ++r)
    inside += inside_count(d.stride, r * d.dilation + d.offset, d.extent.value(), outputs);
  return static_cast<double>(inside) / static_cast<double>(taps * outputs);
}

}  // namespace opfuse
