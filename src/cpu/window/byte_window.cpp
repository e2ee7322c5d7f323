// The stage is a depthwise convolution of codes of known size, whose channels lie in blocks of a vector of sums. Other
// windows of codes widen every tap to i32.
#include "cpu/window/byte_window.hpp"

#include <algorithm>

#include "region/dependence.hpp"
#include "region/single_stage.hpp"

namespace opfuse {
namespace {

constexpr int64_t kMostTaps = 8;

/// The read that is cast to i32; -1: another expression.
int widened_read(const Expr& e) {
  const bool widened = e.op() == ExprOp::cast && e.args()[0].op() == ExprOp::read;
  return widened ? e.args()[0].index() : -1;
}

/// One block of `lanes` along `axis`, whose neighbours lie side by side; the axis `next` moves by whole blocks.
bool in_blocks(const ParamLayout& l, const IndexMap& map, int axis, int next, int64_t lanes) {
  const auto& blocks = l.layout.blocks;
  if (blocks.size() != 1 || blocks[0].factor != lanes || !(l.strides.back() == Dim(1))) return false;
  const auto& order = l.layout.order;
  for (size_t d = 0; d < map.dims.size(); ++d)
    for (const IndexTerm& t : map.dims[d].terms) {
      const auto at = static_cast<size_t>(std::find(order.begin(), order.end(), static_cast<int>(d)) - order.begin());
      if (t.axis == axis && static_cast<int>(d) != blocks[0].axis) return false;
      if (t.axis == next && !(l.strides[at] == Dim(lanes))) return false;
    }
  return true;
}

/// The largest grid that needs no more words than taps alone do.
int64_t grid_of(const ByteWindow& w) {
  for (int64_t grid = kPixelsOfWord; grid > 1; grid /= 2) {
    int64_t most = 0;
    for (int64_t output = 0; output < grid; ++output) most = std::max(most, w.words(output * w.pixel.stride % grid));
    if (most == w.words(0)) return grid;
  }
  return 1;
}

bool known(const Stage& stage, const SlidingDim& d) {
  return d.extent.is_constant() && axis_extent(stage, d.axis).is_constant() &&
         axis_extent(stage, d.tap).constant().value_or(kMostTaps + 1) <= kMostTaps;
}

/// Rows and pixels of the window; nothing where other dimensions move, or sizes are open.
bool take_dimensions(const Stage& stage, const WindowView& view, ByteWindow& w) {
  const int row_axis = row_axis_of(view);
  for (const SlidingDim& d : view.sliding) {
    if (d.axis == view.pixel && d.tap >= 0)
      w.pixel = d;
    else if (d.axis >= 0 && d.axis == row_axis && d.tap >= 0)
      w.row = d;
    else if (d.tap >= 0 || d.offset != 0 || d.stride != 1)
      return false;
  }
  if (w.pixel.tap < 0 || w.pixel.dilation != 1 || view.taps.size() != (w.has_rows() ? 2U : 1U)) return false;
  if (!known(stage, w.pixel) || (w.has_rows() && !known(stage, w.row))) return false;
  w.taps = axis_extent(stage, w.pixel.tap).value();
  w.row_taps = w.has_rows() ? axis_extent(stage, w.row.tap).value() : 1;
  return true;
}

}  // namespace

std::optional<ByteWindow> byte_window(const Region& region, const WindowView& view,
                                      const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  const Stage& stage = region.stages[0];
  if (!is_single_stage(region) || view.value.op() != ExprOp::mul || view.value.dtype() != DType::i32)
    return std::nullopt;
  const int left = widened_read(view.value.args()[0]), right = widened_read(view.value.args()[1]);
  if (left != view.data || right < 0) return std::nullopt;
  ByteWindow w{.weights = right};
  if (!take_dimensions(stage, view, w)) return std::nullopt;
  for (const int read : {left, right}) {
    const Read& r = stage.reads[static_cast<size_t>(read)];
    if (r.stage >= 0) return std::nullopt;
    const auto at = static_cast<size_t>(r.index);
    const DType type = region.params[at].type.dtype;
    if (type != DType::i8 && (read == right || type != DType::u8)) return std::nullopt;
    if (!in_blocks(layouts[at], r.map, view.vec, w.pixel.tap, target.lanes_f32())) return std::nullopt;
    if (read == left) w.data = type;
  }
  w.grid = grid_of(w);
  return w;
}

}  // namespace opfuse
