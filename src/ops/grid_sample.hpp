// Resampling at coordinates given by another tensor: y[n, c, o..] is x[n, c, ..] at grid[n, o.., :], whose coordinates
// run from -1 to 1 across the image, last axis first.
#pragma once

#include <array>

#include "ops/declare.hpp"

namespace opfuse {

enum class GridMode { linear, nearest, cubic };
template <>
inline constexpr auto enum_names<GridMode> = std::array{"linear", "nearest", "cubic"};

enum class GridPadding { zeros, border, reflection };
template <>
inline constexpr auto enum_names<GridPadding> = std::array{"zeros", "border", "reflection"};

/// Inputs x [N, C, spatial..] and grid [N, results.., number of spatial axes].
struct GridSample {
  struct Attrs {
    bool align_corners = false;  ///< -1 and 1 are the centres of the outermost elements, not their outer borders
    GridMode mode = GridMode::linear;
    GridPadding padding_mode = GridPadding::zeros;
    static void each(auto& s, auto&& field) {
      field("align_corners", s.align_corners);
      field("mode", s.mode);
      field("padding_mode", s.padding_mode);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static Cost cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out);
};

// The law of one axis, for numbers and for expressions. `size` is the axis's extent.

template <class S>
S grid_low(const GridSample::Attrs& a) {
  return S(a.align_corners ? 0 : -0.5);
}
template <class S>
S grid_high(const GridSample::Attrs& a, S size) {
  return size - S(a.align_corners ? 1 : 0.5);
}

/// Mirrored at both ends until it lies between them.
template <class S>
S grid_reflected(const GridSample::Attrs& a, S x, S size) {
  const S low = grid_low<S>(a), high = grid_high(a, size), range = high - low;
  const S beyond = maximum(low - x, x - high);
  const S turns = floor(beyond / range), rest = beyond - turns * range;
  const auto even = equal(turns, S(2) * floor(turns * S(0.5)));
  const S from_low = select(even, low + rest, high - rest), from_high = select(even, high - rest, low + rest);
  const S inside = select(less(x, low), from_low, select(greater(x, high), from_high, x));
  return select(greater(range, S(0)), inside, low);
}

/// Where in the axis a coordinate of the grid lies, after padding. Cubic keeps what lies outside: at a border its taps
/// are moved in one by one, as PyTorch and ONNX Runtime do, so the result goes on changing for two elements.
template <class S>
S grid_coordinate(const GridSample::Attrs& a, S at, S size) {
  const S one = at + S(1);
  S x = a.align_corners ? one * S(0.5) * (size - S(1)) : (one * size - S(1)) * S(0.5);
  if (a.mode == GridMode::nearest) x = round_even(x);
  if (a.padding_mode == GridPadding::zeros) return x;
  if (a.padding_mode == GridPadding::reflection) return grid_reflected(a, x, size);
  return a.mode == GridMode::cubic ? x : minimum(maximum(x, S(0)), size - S(1));
}

/// The element that stands for position `at`, a whole number that may lie outside: always inside the axis.
template <class S>
S grid_element(const GridSample::Attrs& a, S at, S size) {
  const S inside = a.padding_mode == GridPadding::reflection ? floor(maximum(grid_reflected(a, at, size), S(0))) : at;
  return minimum(maximum(inside, S(0)), size - S(1));
}

/// Taps lie at floor(x) + first, + first + 1, ...; nearest has one, at x.
inline int grid_taps(GridMode mode) { return mode == GridMode::nearest ? 1 : mode == GridMode::linear ? 2 : 4; }
inline int grid_first(GridMode mode) { return mode == GridMode::cubic ? -1 : 0; }

/// Weight of tap number k where x lies `t` behind its floor. Cubic: Keys with a = -0.75.
template <class S>
S grid_weight(GridMode mode, int k, S t) {
  if (mode == GridMode::nearest) return S(1);
  if (mode == GridMode::linear) return k == 0 ? S(1) - t : t;
  const double a = -0.75;
  const S d = k == 0 ? t + S(1) : k == 1 ? t : k == 2 ? S(1) - t : S(2) - t;
  if (k == 1 || k == 2) return (S(a + 2) * d - S(a + 3)) * d * d + S(1);
  return ((S(a) * d - S(5 * a)) * d + S(8 * a)) * d - S(4 * a);
}

}  // namespace opfuse
