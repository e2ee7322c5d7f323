// Schedules of pooling and depthwise convolutions: the width of the register tile, then parts.
#include <algorithm>
#include <cmath>

#include "cpu/contraction/codes.hpp"
#include "cpu/contraction/register_tile.hpp"
#include "cpu/schedule_parts.hpp"
#include "cpu/schedules.hpp"
#include "cpu/window/byte_window.hpp"
#include "cpu/window/mean_view.hpp"

namespace opfuse {
namespace {

constexpr int64_t kUsefulWidth = 6;

/// Pixels whose sums, row of data and one vector of weights fit the registers, so that every datum is read once for all
/// taps of a row; where those are few, half of the registers hold sums and every tap reads its data again.
int64_t widest_window(const Stage& stage, const WindowView& view, const TargetInfo& target) {
  int64_t row = 0;  // data of one more pixel, and of the first
  int64_t first = 1;
  for (const SlidingDim& d : view.sliding)
    if (d.axis == view.pixel) {
      row = d.stride;
      first = d.tap < 0 ? 1 : (axis_extent(stage, d.tap).value() - 1) * d.dilation + 1;
    }
  const int64_t width = 1 + (target.vector_registers - 2 - first) / (row + 1);
  return std::max<int64_t>(width, 1) >= kUsefulWidth ? width : target.vector_registers / 2;
}

/// Neighbours along a dimension lie side by side: whole vectors of it in a block, or all of it innermost.
bool holds_vectors(const ParamLayout& l, int dim, int64_t lanes) {
  const auto& blocks = l.layout.blocks;
  if (blocks.empty()) return l.layout.order.back() == dim && l.strides.back() == Dim(1);
  return blocks.size() == 1 && blocks[0].axis == dim && blocks[0].factor % lanes == 0;
}

int64_t images_of(const Stage& stage, const WindowView& view) {
  int64_t images = 1;
  for (int axis : view.outer)
    if (axis != row_axis_of(view)) images *= axis_extent(stage, axis).constant().value_or(1);
  return images;
}

/// Images are parts already; an odd number of them is cut once more, so that two workers get the same.
int64_t parts_per_image(int64_t wanted, int64_t images) {
  return std::max<int64_t>((wanted + images - 1) / images, wanted > 1 && images % 2 ? 2 : 1);
}

/// Whole vectors of the lanes' axis lie together in what is read and stored. Means have no other skeleton, so lanes may
/// be gathered and scattered; so may those of dense results behind another stage.
bool layouts_fit(const Stage& stage, const WindowView& view, const std::vector<ParamLayout>& layouts, bool means,
                 int64_t lanes) {
  const auto lanes_along = [&](int param, const IndexMap& map) {
    const ParamLayout& l = layouts[static_cast<size_t>(param)];
    for (size_t d = 0; d < map.dims.size(); ++d)
      for (const IndexTerm& t : map.dims[d].terms)
        if (t.axis == view.vec) return map.dims[d].terms.size() == 1 && holds_vectors(l, static_cast<int>(d), lanes);
    return false;
  };
  const Read& data = stage.reads[static_cast<size_t>(view.data)];
  const bool local = data.stage >= 0;
  if (!local && !means && !lanes_along(data.index, data.map)) return false;
  for (const StageOutput& o : stage.outputs) {
    if (o.param < 0) continue;
    const bool dense = layouts[static_cast<size_t>(o.param)].layout.blocks.empty();
    if (!lanes_along(o.param, o.map) && !((local || means) && dense)) return false;
  }
  return true;
}

/// The kernel stores means lane by lane or in vectors of channels, which are axis 1 (cpu/window/mean_view.hpp).
bool means_fit(const Region& region, const MeanView& means, const std::vector<ParamLayout>& layouts, int64_t lanes) {
  const StageOutput& o = region.stages[static_cast<size_t>(means.bands)].outputs[0];
  const ParamLayout& l = layouts[static_cast<size_t>(o.param)];
  return l.layout.blocks.empty() || holds_vectors(l, 1, lanes);
}

/// As few ragged pixels as possible.
std::vector<Ranked<int64_t>> widths_of(const Stage& stage, const WindowView& view, const TargetInfo& target,
                                       size_t most) {
  const int64_t pixels = pixel_count(stage, view.pixel);
  Fastest<int64_t> fastest(most);
  for (int64_t w = 1; w == 1 || w <= std::min(pixels, widest_window(stage, view, target)); ++w)
    fastest.offer(std::ceil(static_cast<double>(pixels) / static_cast<double>(w)) * (static_cast<double>(w) + 2.0), w);
  return fastest.all();
}

/// Sums of the tile and some words of data and weights are in registers; codes leave four pixels at a time. Without
/// byte products a word of data or weights is two vectors, and those of all rows of taps do not rest in registers.
std::vector<Ranked<int64_t>> widths_of_codes(const Stage& stage, const WindowView& view, const TargetInfo& target,
                                             size_t most) {
  const int64_t pixels = pixel_count(stage, view.pixel), registers = target.vector_registers,
                widest = has_byte_products(target) ? registers * 5 / 8 : registers / 4;
  const auto cycles = [](int64_t w) { return w == 0 ? 0.0 : static_cast<double>(w + w % kPixelsOfWord + 2); };
  Fastest<int64_t> fastest(most);
  for (int64_t w = 1; w == 1 || w <= std::min(pixels, widest); ++w)
    fastest.offer(static_cast<double>(pixels / w) * cycles(w) + cycles(pixels % w), w);
  return fastest.all();
}

void cut_parts(Parts& s, const Stage& stage, const WindowView& view, const std::optional<MeanView>& means,
               const TargetInfo& target) {
  const int64_t lanes = target.lanes_f32();
  const int row_axis = row_axis_of(view);
  const int64_t rows = row_axis < 0 ? 1 : axis_extent(stage, row_axis).constant().value_or(1);
  const int64_t blocks = (*axis_extent(stage, view.vec).constant() + lanes - 1) / lanes;
  const int64_t wanted = wanted_parts(static_cast<double>(work_of(stage)) * 2, target);
  const int64_t images = images_of(stage, view);
  const int64_t parts = parts_per_image(wanted, images);
  if (means) {
    split_blocks(s, parts, blocks, means->count, target);
    return rows_first(s);
  }
  // maps of several images lie beyond a core's own cache, from where whole channels come faster than some rows of
  // each: 384 channels of 14x14 in 0.028 instead of 0.046 ms an image (bench/NOTES.md)
  if (images > 1) return split_blocks(s, parts, blocks, 1, target);
  // few rows are cut three at a time: a part reads the weights of all its channels
  const bool few =
      rows < 3 * parts && (target.launch.threads <= kFewThreads || blocks * std::max<int64_t>(1, rows / 3) >= parts);
  split_parts(s, parts, blocks, few ? std::max<int64_t>(1, rows / 3) : rows, 1.0, 1.0, target);
  rows_first(s);
}

}  // namespace

std::vector<Ranked<WindowSchedule>> schedule_window(const Region& region, const std::vector<ParamLayout>& layouts,
                                                    int index, const TargetInfo& target, size_t most) {
  const auto found = view_window(region, index);
  const auto* view = std::get_if<WindowView>(&found);
  if (!view) return {};
  const Stage& stage = region.stages[static_cast<size_t>(index)];
  const auto means = view_means(region);
  if (!layouts_fit(stage, *view, layouts, means.has_value(), target.lanes_f32())) return {};
  if (means && !means_fit(region, *means, layouts, target.lanes_f32())) return {};
  for (int tap : view->taps)
    if (!axis_extent(stage, tap).is_constant()) return {};
  if (!axis_extent(stage, view->vec).is_constant() || view->pixel < 0) return {};
  const bool codes = byte_window(region, *view, layouts, target).has_value();
  if (view->padding != 0 && !codes) return {};
  WindowSchedule s;
  cut_parts(s, stage, *view, means, target);
  std::vector<Ranked<WindowSchedule>> schedules;
  for (const auto& [cycles, width] :
       codes ? widths_of_codes(stage, *view, target, most) : widths_of(stage, *view, target, most)) {
    s.tile_w = width;
    schedules.push_back({cycles, s});
  }
  return schedules;
}

}  // namespace opfuse
