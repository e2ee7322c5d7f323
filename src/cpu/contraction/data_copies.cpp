// A copy costs a load and a store for each row of a register, products of that row 16 cycles for each output vector of
// all taps: copies are a few percent. Rows put together pixel by pixel for each product cost more than the product.
#include "cpu/contraction/data_copies.hpp"

#include <algorithm>

#include "base/integers.hpp"
#include "cpu/contraction/matrix.hpp"
#include "cpu/contraction/register_tile.hpp"

namespace opfuse {
namespace {

constexpr int64_t kJoinedRow = 1 << 12;  // columns of an image whose rows always fit

int64_t taps_of(const Stage& stage, const SlidingDim& d) {
  return d.tap < 0 ? 1 : axis_extent(stage, d.tap).constant().value_or(0);
}

/// Windows of known extents; nothing: some are open.
std::optional<bool> leaves(const Stage& stage, const SlidingDim& d) {
  const auto results = d.axis < 0 ? std::optional<int64_t>(1) : axis_extent(stage, d.axis).constant();
  const auto extent = d.extent.constant();
  const int64_t taps = taps_of(stage, d);
  if (!results || !extent || !taps) return std::nullopt;
  return d.offset < 0 || (*results - 1) * d.stride + (taps - 1) * d.dilation + d.offset >= *extent;
}

const SlidingDim* along(const ContractionView& view, int axis) {
  for (const SlidingDim& d : view.sliding)
    if (axis >= 0 && d.axis == axis) return &d;
  return nullptr;
}

/// Rows and columns of known extents; all other dimensions stand for themselves.
bool is_image(const Stage& stage, const ContractionView& view) {
  const SlidingDim *row = along(view, row_axis_of(view)), *column = along(view, view.pixel);
  if (!row || !column || row == column || view.group_out || !view.phases.empty() || view.channel < 0) return false;
  for (const SlidingDim& d : view.sliding) {
    const bool image = &d == row || &d == column;
    if (image ? !leaves(stage, d) : d.tap >= 0 || d.stride != 1 || d.offset != 0) return false;
    if (!image && view.guarded && leaves(stage, d).value_or(!(axis_extent(stage, std::max(0, d.axis)) == d.extent)))
      return false;
  }
  return view.taps.size() == size_t{row->tap >= 0} + size_t{column->tap >= 0};
}

int64_t rows_at_once(const ContractionSchedule& s, int64_t all) {
  const int64_t items = ceil_of(all, int64_t{s.tile_h}), part = ceil_of(items, int64_t{s.parts_p});
  return std::min(all, std::min<int64_t>(s.chunk, part) * s.tile_h);
}

}  // namespace

bool joins_taps(const Region& region, const ContractionView& view, const TargetInfo& target) {
  const Stage& stage = region.stages[0];
  if (!may_multiply_matrices(stage, view, target) || !is_image(stage, view)) return false;
  const SlidingDim& column = *along(view, view.pixel);
  const Read &data = stage.reads[static_cast<size_t>(view.data)],
             &weights = stage.reads[static_cast<size_t>(view.weights)];
  if (data.stage >= 0 || weights.stage >= 0) return false;
  const int64_t words = taps_of(stage, column) * kJoinedChannels / view.types.unit();
  const auto last = [](const Read& read) { return static_cast<int>(read.map.dims.size()) - 1; };
  const auto& innermost = weights.map.dims[static_cast<size_t>(last(weights))].terms;
  return channel_depth(stage, view) <= kJoinedChannels && column.tap >= 0 && column.dilation == 1 &&
         words <= kMatrixRows && column.extent.value() <= kJoinedRow && column.dim == last(data) &&
         view.data_channel_dim < column.dim && innermost.size() == 1 && innermost[0].axis == column.tap &&
         view.weights_vec_dim != last(weights) && view.weights_channel_dim != last(weights);
}

std::optional<DataCopies> data_copies(const Stage& stage, const ContractionView& view, const ContractionSchedule& s) {
  if (!s.matrix || !is_image(stage, view)) return std::nullopt;
  DataCopies c;
  c.row = *along(view, row_axis_of(view));
  c.column = *along(view, view.pixel);
  c.row_taps = taps_of(stage, c.row);
  c.column_taps = taps_of(stage, c.column);
  c.step = s.step;
  c.joined = s.step == kJoinedChannels;
  c.blocks = ceil_of(channel_depth(stage, view), c.step);
  const int64_t results = axis_extent(stage, view.pixel).value(), rows = axis_extent(stage, c.row.axis).value();
  c.pixel = c.column.tap < 0 ? 1 : c.column.stride;
  c.width = (results - 1) * c.pixel + (c.column_taps - 1) * c.column.dilation + 1;
  c.pitch = ceil_of(c.width, c.pixel) * c.pixel;
  c.phases = c.row.tap < 0 ? 1 : c.row.stride;
  c.rows = ceil_of(c.input_rows(rows_at_once(s, rows)), c.phases);
  const bool dense = c.row.stride * c.column.extent.value() == c.column.stride * s.tile_w;
  const bool outside = view.guarded && (*leaves(stage, c.column) || (s.tile_h > 1 && *leaves(stage, c.row)));
  return c.joined || outside || (s.tile_h > 1 && !dense) ? std::optional(c) : std::nullopt;
}

int64_t row_distance(const std::optional<DataCopies>& copies, const ContractionSchedule& s) {
  return copies ? copies->pitch / copies->pixel : int64_t{s.tile_w};
}

int64_t matrix_height(const Stage& stage, const ContractionView& view, ContractionSchedule s, int64_t rows) {
  if (s.tile_w > kMatrixRows || rows == 1) return 1;
  s.matrix = 1;
  s.tile_h = 2;
  const MatrixTile tile(s.tile_w, 2, row_distance(data_copies(stage, view, s), s));
  return std::min(rows, kMatrixPixels / kMatrixRows * tile.rows);
}

void copy_where_needed(ContractionSchedule& s, const Region& region, const ContractionView& view,
                       const TargetInfo& target) {
  const Stage& stage = region.stages[0];
  const auto room = static_cast<int64_t>(target.shares.copies * static_cast<double>(target.l2_bytes));
  ContractionSchedule shorter = s;
  auto copies = data_copies(stage, view, shorter);
  if (!copies) return;
  const int64_t items = ceil_of(axis_extent(stage, copies->row.axis).value(), int64_t{s.tile_h});
  const int64_t whole = std::min<int64_t>(s.chunk, ceil_of(items, int64_t{s.parts_p}));
  shorter.chunk = whole;
  while (copies && copies->bytes(view.types) > room && shorter.chunk > 1) {
    shorter.chunk = ceil_of(int64_t{shorter.chunk}, int64_t{2});
    copies = data_copies(stage, view, shorter);
  }
  if (!copies || (copies->bytes(view.types) > room && !copies->joined)) return;
  if (shorter.chunk < whole) s.chunk = shorter.chunk;
  s.copies = 1;
  s.fetch_data = 0;
}

}  // namespace opfuse
