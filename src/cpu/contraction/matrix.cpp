// A row of blocked data has the channels of one block, so a product takes no more of them: where all channels are in
// whole rows of a register, blocks are such rows. Dense rows of features fill them too. A quarter of a row (16 codes)
// is slower than vectors: ResNet-50 of codes 14.5 against 12.8 ms. Few pixels use few of its rows: vectors are as fast
// there.
#include "cpu/contraction/matrix.hpp"

#include <algorithm>

#include "base/integers.hpp"
#include "cpu/contraction/register_tile.hpp"

namespace opfuse {

bool has_matrix_products(const ElementTypes& types, const TargetInfo& target) {
  if (types.unit() == 1 || target.vector_bytes != kMatrixRowBytes || !target.has("amx-tile")) return false;
  return target.has(types.data == DType::bf16 ? "amx-bf16" : "amx-int8");
}

int64_t matrix_channels(const ElementTypes& types) { return kMatrixRowBytes / types.data_bytes(); }

bool fill_matrices(const ElementTypes& types, int64_t channels) { return 2 * channels >= matrix_channels(types); }

bool may_multiply_matrices(const Stage& stage, const ContractionView& view, const TargetInfo& target) {
  if (!has_matrix_products(view.types, target) || view.sums() != 1 || view.channel < 0) return false;
  int64_t pixels = pixel_count(stage, view.pixel);
  if (const int row = row_axis_of(view); row >= 0)
    pixels *= axis_extent(stage, row).constant().value_or(kFewestMatrixPixels);
  return pixels >= kFewestMatrixPixels;
}

int64_t matrix_step(const Stage& stage, const ContractionView& view, const ParamLayout& data, int64_t step,
                    const TargetInfo& target) {
  if (!may_multiply_matrices(stage, view, target)) return 0;
  const int64_t depth = channel_depth(stage, view), row = matrix_channels(view.types);
  if (!data.layout.blocks.empty()) return fill_matrices(view.types, step) ? step : 0;
  if (view.taps.empty() && depth % row == 0) return row;
  return depth % step == 0 && fill_matrices(view.types, step) ? step : 0;
}

int64_t matrix_width(int64_t pixels) {
  if (pixels <= kMatrixPixels) return pixels;
  const int64_t tiles = ceil_of(pixels, kMatrixPixels), equal = ceil_of(pixels, tiles);
  for (int64_t width = equal; width >= kMatrixPixels * 3 / 4; --width)
    if (pixels % width == 0) return width;  // no other tile at the end
  return equal;
}

MatrixTile::MatrixTile(int64_t w, int64_t h, int64_t d)
    : width(w), height(h), distance(d), share(ceil_of(w, ceil_of(w, kMatrixRows))) {
  if (h > 1) rows = std::max<int64_t>(0, kMatrixRows - w) / d + 1;
}

int64_t MatrixTile::registers(int64_t wide, int64_t high) const {
  return cut() ? ceil_of(wide, share) : ceil_of(high, rows);
}

int64_t MatrixTile::first_pixel(int64_t number, int64_t wide) const {
  return cut() ? number * share : number * rows * wide;
}

int64_t MatrixTile::pixels_in(int64_t number, int64_t wide, int64_t high) const {
  if (cut()) return std::min(share, wide - number * share);
  return (std::min(rows, high - number * rows) - 1) * distance + wide;
}

int64_t MatrixTile::place_of(int64_t pixel, int64_t wide) const {
  if (cut()) return pixel / share * kMatrixRows + pixel % share;
  const int64_t row = pixel / wide;
  return row / rows * kMatrixRows + row % rows * distance + pixel % wide;
}

}  // namespace opfuse
