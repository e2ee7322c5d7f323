#include "tensor/winograd_codes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/fail.hpp"
#include "base/parallel.hpp"

namespace opfuse::winograd {
namespace {

constexpr int64_t kLargestCode = 255;

using WholeMatrix = std::vector<std::array<int32_t, 3>>;

/// Rows of the filter matrix as whole numbers.
WholeMatrix whole_filter_matrix(int64_t tile) {
  const CodesForm& form = codes_form(tile);
  const Matrix m = filter_matrix(form.pairs);
  WholeMatrix whole(m.size());
  for (size_t i = 0; i < m.size(); ++i)
    for (size_t j = 0; j < 3; ++j)
      whole[i][j] = static_cast<int32_t>(std::lround(m[i][j] * (i + 1 < m.size() ? form.finite : form.infinite)));
  return whole;
}

/// One 3x3 filter `g`: whole numbers below 2^15.
void transform_filter(const WholeMatrix& height, const WholeMatrix& width, const int8_t* g, int16_t* u) {
  for (const auto& row : height) {
    std::array<int32_t, 3> sums{};
    for (size_t a = 0; a < 3; ++a)
      for (size_t b = 0; b < 3; ++b) sums[b] += row[a] * g[a * 3 + b];
    for (const auto& column : width)
      *u++ = static_cast<int16_t>(sums[0] * column[0] + sums[1] * column[1] + sums[2] * column[2]);
  }
}

}  // namespace

bool holds_codes(const Layout& layout) { return layout.tile_h > 0 && layout.block_of(1) == 2; }

const CodesForm& codes_form(int64_t tile) {
  static const CodesForm two{{1}, 2, 2, 1, 1, 1}, four{{1, 2}, 24, 6, 4, 3, 3};
  OPFUSE_CHECK(tile == 2 || tile == 4, "F({},3)", tile);
  return tile == 2 ? two : four;
}

uint32_t inverse_of(uint32_t odd) {
  uint32_t x = odd;  // right in three bits; each step doubles them
  for (int i = 0; i < 4; ++i) x *= 2 - odd * x;
  return x;
}

std::string codes_bound(const Tensor& filters, int64_t tile_h, int64_t tile_w) {
  const int64_t shift = codes_form(tile_h).shift + codes_form(tile_w).shift;
  const int64_t outputs = filters.sizes()[0], each = outputs ? filters.elements() / outputs : 0;
  const auto* w = static_cast<const int8_t*>(filters.data());
  for (int64_t o = 0; o < outputs; ++o) {
    int64_t above = 0, below = 0;
    for (int64_t i = 0; i < each; ++i) {
      const int64_t code = w[o * each + i];
      (code > 0 ? above : below) += std::abs(code);
    }
    const int64_t most = kLargestCode * std::max(above, below);
    if (most >= (int64_t{1} << (31 - shift)))
      return fmt::format("F({}x{}) multiplies sums of codes by {}, and one of output {} may be {}: beyond i32", tile_h,
                         tile_w, int64_t{1} << shift, o, most);
  }
  return "";
}

Tensor transform_codes(const Tensor& filters, int64_t tile_h, int64_t tile_w) {
  const std::vector<int64_t>& sizes = filters.sizes();
  OPFUSE_CHECK(filters.dtype() == DType::i8 && sizes.size() == 4 && sizes[2] == 3 && sizes[3] == 3,
               "F({}x{},3x3) of {}", tile_h, tile_w, filters.type().text());
  const WholeMatrix gh = whole_filter_matrix(tile_h), gw = whole_filter_matrix(tile_w);
  Tensor out(DType::i16, {sizes[0], sizes[1], points(tile_h), points(tile_w)});
  const auto* from = static_cast<const int8_t*>(filters.data());
  auto* to = static_cast<int16_t*>(out.mutable_data());
  const int64_t area = points(tile_h) * points(tile_w);
  parallel_for(sizes[0], [&](int64_t o) {
    for (int64_t filter = o * sizes[1]; filter < (o + 1) * sizes[1]; ++filter)
      transform_filter(gh, gw, from + filter * 9, to + filter * area);
  });
  return out;
}

}  // namespace opfuse::winograd
