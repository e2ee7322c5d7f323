// GridSample, by the law of one axis (grid_sample.hpp): for each result and axis, taps with an element and a weight;
// the result is the sum over all combinations of taps. Elements outside are zeros, or those that padding names.
#include "ops/grid_sample.hpp"

#include <cmath>

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "tensor/number.hpp"

namespace opfuse {
namespace {

struct Tap {
  int64_t element = 0;
  double weight = 0;
};

std::vector<Tap> taps_at(const GridSample::Attrs& a, double at, int64_t extent) {
  const auto size = static_cast<double>(extent);
  const double x = grid_coordinate(a, at, size);
  const double low = a.mode == GridMode::nearest ? x : std::floor(x);
  std::vector<Tap> taps;
  for (int k = 0; k < grid_taps(a.mode); ++k) {
    const double position = low + static_cast<double>(grid_first(a.mode) + k);
    const bool inside = a.padding_mode != GridPadding::zeros || (position >= 0 && position <= size - 1);
    if (inside)
      taps.push_back({truncate_to(DType::i64, grid_element(a, position, size)), grid_weight(a.mode, k, x - low)});
  }
  return taps;
}

/// Sum over all combinations of the taps of axes `axis` and later, of the element at `offset`.
double sampled(const Reals& x, const std::vector<int64_t>& sizes, const std::vector<std::vector<Tap>>& taps,
               size_t axis, int64_t offset) {
  if (axis == taps.size()) return x[offset];
  double sum = 0;
  for (const Tap& tap : taps[axis])
    sum += tap.weight * sampled(x, sizes, taps, axis + 1, offset * sizes[axis + 2] + tap.element);
  return sum;
}

}  // namespace

OpSpec GridSample::spec() {
  return {.name = "grid_sample",
          .inputs = {{"x"}, {"grid"}},
          .outputs = {{"y"}},
          .kind = OpKind::injective,
          .flops_per_element = 8,
          .doc = "Resampling at coordinates that another tensor gives."};
}

std::vector<TensorType> GridSample::infer(const Attrs&, const Inference& in) {
  require_float(in, 0);
  require_float(in, 1);
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  const Shape &x = in.shape(0), &grid = in.shape(1);
  require_min_rank(in, 0, 3);
  in.require_rank(1, x.rank());
  const size_t spatial = x.rank() - 2;
  if (!may_equal(grid[x.rank() - 1], Dim(static_cast<int64_t>(spatial))))
    throw fail(E::shape_mismatch, "grid has {} coordinates per result, x has {} spatial axes",
               grid[x.rank() - 1].text(), spatial);
  Shape y{unify(x[0], grid[0], "the batch"), x[1]};
  for (size_t i = 0; i < spatial; ++i) {
    if (x[i + 2] == Dim(0)) throw fail(E::bad_dimension, "axis {} of x is empty: there is nothing to sample", i + 2);
    y.dims.push_back(grid[i + 1]);
  }
  return {{in.dtype(0), y}};
}

std::vector<Tensor> GridSample::reference(const Attrs& a, Tensors in, Precision) {
  const Reals x(*in[0]), grid(*in[1]);
  const std::vector<int64_t> sizes = in[0]->sizes();
  const size_t spatial = sizes.size() - 2;
  std::vector<int64_t> out{sizes[0], sizes[1]};
  for (size_t i = 0; i < spatial; ++i) out.push_back(in[1]->dim(i + 1));
  Tensor y(DType::f64, out);
  const int64_t points = product(out, 2, out.size());
  std::vector<std::vector<Tap>> taps(spatial);
  for (int64_t n = 0; n < sizes[0]; ++n)
    for (int64_t p = 0; p < points; ++p) {
      for (size_t axis = 0; axis < spatial; ++axis) {
        const int64_t at = (n * points + p) * static_cast<int64_t>(spatial) + static_cast<int64_t>(spatial - 1 - axis);
        taps[axis] = taps_at(a, grid[at], sizes[axis + 2]);
      }
      for (int64_t c = 0; c < sizes[1]; ++c)
        reals(y)[(n * sizes[1] + c) * points + p] = sampled(x, sizes, taps, 0, n * sizes[1] + c);
    }
  return {rounded(std::move(y), in[0]->dtype())};
}

Cost GridSample::cost(const Attrs& a, std::span<const TensorType> in, std::span<const TensorType> out) {
  if (!in[0].shape.ranked || !out[0].shape.ranked) return {};
  int64_t taps = 1;
  for (size_t axis = 2; axis < in[0].shape.rank(); ++axis) taps *= grid_taps(a.mode);
  return {.flops = out[0].shape.elements() * Dim(2 * taps)};
}

}  // namespace opfuse
