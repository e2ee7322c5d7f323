// A row of blocked data has the channels of one block, so a product takes no more of them; dense rows of features fill
// a register's row. A quarter of a row (16 codes) is slower than vectors: ResNet-50 of codes 14.5 against 12.8 ms. Few
// pixels use few of its rows: vectors are as fast there.
#include "cpu/contraction/matrix.hpp"

#include <algorithm>

#include "base/integers.hpp"
#include "cpu/contraction/register_tile.hpp"

namespace opfuse {

bool has_matrix_products(const ElementTypes& types, const TargetInfo& target) {
  if (types.unit() == 1 || target.vector_bytes != kMatrixRowBytes || !target.has("amx-tile")) return false;
  return target.has(types.data == DType::bf16 ? "amx-bf16" : "amx-int8");
}

bool fill_matrices(const ElementTypes& types, bool blocked, const TargetInfo& target) {
  return !blocked || 2 * types.lanes(target) * types.data_bytes() >= kMatrixRowBytes;
}

int64_t matrix_step(const Stage& stage, const ContractionView& view, const ParamLayout& data,
                    const TargetInfo& target) {
  if (!has_matrix_products(view.types, target) || view.sums() != 1 || view.channel < 0) return 0;
  int64_t pixels = pixel_count(stage, view.pixel);
  if (const int row = row_axis_of(view); row >= 0)
    pixels *= axis_extent(stage, row).constant().value_or(kFewestMatrixPixels);
  if (pixels < kFewestMatrixPixels) return 0;
  const int64_t lanes = view.types.lanes(target), depth = channel_depth(stage, view);
  if (!data.layout.blocks.empty()) return fill_matrices(view.types, true, target) ? lanes : 0;
  const int64_t row = kMatrixRowBytes / view.types.data_bytes();
  if (view.taps.empty() && depth % row == 0) return row;
  return depth % lanes == 0 && fill_matrices(view.types, true, target) ? lanes : 0;
}

int64_t matrix_width(int64_t pixels) {
  if (pixels <= kMatrixPixels) return pixels;
  // equal tiles where whole ones leave a short one behind
  const int64_t tiles = ceil_of(pixels, kMatrixPixels), rest = pixels % kMatrixPixels;
  return rest == 0 || rest > kMatrixRows ? kMatrixPixels : std::min(kMatrixPixels, ceil_of(pixels, tiles));
}

}  // namespace opfuse
