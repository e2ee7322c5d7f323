// Weights as ONNX defines them. With x = floor(x) + t, a tap at floor(x) + i has the weight of its distance i - t:
//   linear   1 - |d|              for |d| < 1
//   cubic    (a+2)|d|^3 - (a+3)|d|^2 + 1 for |d| <= 1,   a|d|^3 - 5a|d|^2 + 8a|d| - 4a for |d| < 2     (Keys)
// Antialiasing where an axis shrinks widens the filter: distances are multiplied by the scale, and weights are divided
// by their sum. Taps beyond the edge read the edge, or do not count (exclude_outside).
#include "ops/resize_taps.hpp"

#include <algorithm>
#include <cmath>

#include "base/fail.hpp"
#include "base/limits.hpp"

namespace opfuse {
namespace {

/// What the tables of an axis may hold.
void check_size(const ResizeAxis& axis, double taps) {
  const Limits& limits = limits_in_force();
  if (taps > static_cast<double>(limits.window_taps))
    throw fail(E::bad_attribute, "a scale of {} needs {} taps, at most {} are taken", axis.scale, taps,
               limits.window_taps)
        .hint("where this is meant, " + how_to_raise("window_taps"));
  if (taps * static_cast<double>(axis.out) > static_cast<double>(limits.index_elements))
    throw fail(E::bad_attribute, "{} results of {} taps each, at most {} positions are made", axis.out, taps,
               limits.index_elements)
        .hint("where this is meant, " + how_to_raise("index_elements"));
}

double weight_of(const Resize::Attrs& attrs, double distance) {
  const double d = std::fabs(distance), a = attrs.cubic_coeff_a;
  if (attrs.mode == ResizeMode::linear) return std::max(0.0, 1 - d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

}  // namespace

ResizeTaps resize_taps(const Resize::Attrs& attrs, const ResizeAxis& axis) {
  const double radius = attrs.mode == ResizeMode::linear ? 1 : 2;
  const double scale = attrs.antialias ? std::min(axis.scale, 1.0) : 1;
  check_size(axis, 2 * std::ceil(radius / scale));
  const auto first = static_cast<int64_t>(std::floor(-radius / scale)) + 1;
  ResizeTaps taps{2 - 2 * first, {}, {}};
  const bool normalised = attrs.antialias || attrs.exclude_outside;
  for (int64_t o = 0; o < axis.out; ++o) {
    const double x = resize_coordinate(attrs.coordinate_transformation_mode, axis, o);
    // Far outside of the axis (tf_crop_and_resize) every tap is the edge; the value is replaced anyway.
    const double low = std::clamp(std::floor(x), -1e9, 1e9), t = std::clamp(x - low, 0.0, 1.0);
    double sum = 0;
    for (int64_t i = first; i < first + taps.count; ++i) {
      const int64_t at = static_cast<int64_t>(low) + i, inside = std::clamp<int64_t>(at, 0, axis.in - 1);
      const double weight =
          attrs.exclude_outside && at != inside ? 0 : weight_of(attrs, scale * (static_cast<double>(i) - t));
      taps.positions.push_back(inside);
      taps.weights.push_back(weight);
      sum += weight;
    }
    if (!normalised || sum == 0) continue;
    for (int64_t k = 0; k < taps.count; ++k) taps.weights[static_cast<size_t>(o * taps.count + k)] /= sum;
  }
  return taps;
}

}  // namespace opfuse
