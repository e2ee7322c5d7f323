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
  // equal tiles where whole ones leave a short one behind
  const int64_t tiles = ceil_of(pixels, kMatrixPixels), rest = pixels % kMatrixPixels;
  return rest == 0 || rest > kMatrixRows ? kMatrixPixels : std::min(kMatrixPixels, ceil_of(pixels, tiles));
}

}  // namespace opfuse
