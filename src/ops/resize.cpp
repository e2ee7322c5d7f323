// Resize: output extents from scales or sizes, source coordinates per axis, then nearest (a table copy) or linear and
// cubic, which are separable: each resized axis in turn, in double, by its taps.
#include "ops/resize.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "ops/resize_taps.hpp"
#include "ops/table_copy.hpp"
#include "tensor/dim_rule.hpp"
#include "tensor/number.hpp"

namespace opfuse {
namespace {

/// The axes that operands list, in their order.
std::vector<size_t> listed_axes(const Resize::Attrs& a, size_t rank) {
  std::vector<size_t> axes;
  for (size_t i = 0; a.axes.empty() && i < rank; ++i) axes.push_back(i);
  if (!a.axes.empty()) normalize_axes(a.axes, rank, "axes");
  for (int64_t axis : a.axes) axes.push_back(normalize_axis(axis, rank));
  return axes;
}

void check_count(size_t count, const std::vector<size_t>& axes, const char* what) {
  if (count != axes.size()) throw fail(E::shape_mismatch, "{} has {} values for {} axes", what, count, axes.size());
}

double checked_scale(double scale) {
  if (!(scale > 0) || !(scale < 1e9))
    throw fail(E::bad_attribute, "a scale is {}; it must be positive and below 1e9", scale);
  return scale;
}

/// floor(in * scale) in single precision, as engines compute it: 0.7f * 10 is 7.
int64_t scaled(int64_t in, double scale) {
  const float out = std::floor(static_cast<float>(in) * static_cast<float>(scale));
  if (!(out < 9e15f)) throw fail(E::bad_dimension, "an axis of {} scaled by {} is impossible", in, scale);
  return static_cast<int64_t>(out);
}

Dim scaled(const Dim& in, double scale) {
  if (in.is_constant()) return scaled(in.value(), scale);
  const double up = std::round(scale), down = std::round(1 / scale);
  if (up == scale) return in * Dim(static_cast<int64_t>(up));
  if (static_cast<float>(1 / down) == static_cast<float>(scale)) return floor_div(in, static_cast<int64_t>(down));
  constexpr int64_t kFinest = 1024;  // of fractions that floats have exactly: 1.5, 0.75
  for (int64_t whole = 2; whole <= kFinest; whole *= 2)
    if (const double part = scale * static_cast<double>(whole); part == std::floor(part))
      return floor_div(in * Dim(static_cast<int64_t>(part)), Dim(whole));
  throw fail(E::unknown_dimension, "a symbolic axis {} cannot be scaled by {}", in.text(), scale)
      .hint("bind the dimension, or use a factor such as 2, 1.5 or 0.5");
}

std::vector<double> scales_of(const Resize::Attrs& a, const Tensor* scales) {
  if (!scales) return a.scales;
  std::vector<double> values;
  for (int64_t i = 0; i < scales->elements(); ++i) values.push_back(scales->real(i));
  return values;
}

/// The axis whose factor all listed axes get; sizes round half up.
const ResizeAxis& common_scale(AspectPolicy policy, const std::vector<size_t>& axes,
                               const std::vector<ResizeAxis>& each) {
  const auto less = [&](size_t a, size_t b) { return each[a].scale < each[b].scale; };
  const auto [least, most] = std::minmax_element(axes.begin(), axes.end(), less);
  return each[policy == AspectPolicy::not_larger ? *least : *most];
}

void set_sizes(const Resize::Attrs& a, const std::vector<int64_t>& x, const std::vector<int64_t>& sizes,
               const std::vector<size_t>& axes, std::vector<ResizeAxis>& result) {
  check_count(sizes.size(), axes, "sizes");
  for (size_t i = 0; i < axes.size(); ++i) {
    if (sizes[i] < 0 || (sizes[i] > 0 && x[axes[i]] == 0))
      throw fail(E::bad_dimension, "an axis of {} cannot be resized to {}", x[axes[i]], sizes[i]);
    ResizeAxis& r = result[axes[i]];
    r.out = sizes[i];
    r.scale = r.in == 0 ? 1 : static_cast<double>(r.out) / static_cast<double>(r.in);
    r.length = static_cast<double>(r.out);
    if (r.in > 0) r.from = static_cast<double>(r.in), r.to = r.length;
  }
  if (a.keep_aspect_ratio_policy == AspectPolicy::stretch || axes.empty()) return;
  const ResizeAxis common = common_scale(a.keep_aspect_ratio_policy, axes, result);
  for (size_t axis : axes) {
    ResizeAxis& r = result[axis];
    r.scale = common.scale, r.from = common.from, r.to = common.to;
    r.length = static_cast<double>(r.in) * r.to / r.from;
    r.out = static_cast<int64_t>(std::floor(r.length + 0.5));
  }
}

constexpr double kOutside = std::numeric_limits<double>::quiet_NaN();

/// Source coordinates of an axis, kOutside where tf_crop_and_resize leaves the image.
std::vector<double> coordinates(const Resize::Attrs& a, const ResizeAxis& axis) {
  std::vector<double> x(static_cast<size_t>(axis.out));
  for (int64_t o = 0; o < axis.out; ++o) {
    double& at = x[static_cast<size_t>(o)];
    at = resize_coordinate(a.coordinate_transformation_mode, axis, o);
    if (a.coordinate_transformation_mode == CoordinateMode::tf_crop_and_resize &&
        (at < 0 || at > static_cast<double>(axis.in - 1)))
      at = kOutside;
  }
  return x;
}

Tensor nearest(const Resize::Attrs& a, const Tensor& x, const std::vector<ResizeAxis>& axes) {
  std::vector<std::vector<int64_t>> table;
  for (const ResizeAxis& axis : axes) {
    if (axis.is_identity(a.coordinate_transformation_mode)) {
      table.push_back(identity_table(axis.in));
      continue;
    }
    auto& t = table.emplace_back();
    for (double at : coordinates(a, axis))
      t.push_back(std::isnan(at) ? -1 : std::clamp<int64_t>(resize_nearest(a.nearest_mode, at), 0, axis.in - 1));
  }
  const Tensor fill = Tensor::scalar(x.dtype(), extrapolated(a, x.dtype()));
  return table_copy(x, table, &fill);
}

/// Interpolates along axis `d` of a f64 tensor.
Tensor interpolated_axis(const Resize::Attrs& a, const Tensor& x, size_t d, const ResizeAxis& axis) {
  std::vector<int64_t> sizes = x.sizes();
  sizes[d] = axis.out;
  Tensor y(DType::f64, sizes);
  const int64_t outer = product(sizes, 0, d), inner = product(sizes, d + 1, sizes.size());
  const ResizeTaps taps = resize_taps(a, axis);
  const auto* from = static_cast<const double*>(x.data());
  double* to = reals(y);
  for (int64_t n = 0; n < outer; ++n)
    for (int64_t o = 0; o < axis.out; ++o, to += inner) {
      std::fill_n(to, inner, 0.0);
      for (int64_t k = o * taps.count; k < (o + 1) * taps.count; ++k) {
        const double w = taps.weights[static_cast<size_t>(k)];
        if (w == 0) continue;
        const double* p = from + (n * axis.in + taps.positions[static_cast<size_t>(k)]) * inner;
        for (int64_t i = 0; i < inner; ++i) to[i] += p[i] * w;
      }
    }
  return y;
}

/// Elements whose coordinate on any axis lies outside take the extrapolation value.
void fill_outside(const Resize::Attrs& a, const std::vector<ResizeAxis>& axes, DType dtype, Tensor& y) {
  const double fill = extrapolated(a, dtype);
  if (a.coordinate_transformation_mode != CoordinateMode::tf_crop_and_resize) return;
  for (size_t d = 0; d < axes.size(); ++d) {
    if (axes[d].is_identity(a.coordinate_transformation_mode)) continue;
    const std::vector<double> at = coordinates(a, axes[d]);
    const int64_t inner = product(y.sizes(), d + 1, y.rank()), outer = product(y.sizes(), 0, d);
    for (int64_t n = 0; n < outer; ++n)
      for (int64_t o = 0; o < axes[d].out; ++o)
        if (std::isnan(at[static_cast<size_t>(o)])) std::fill_n(reals(y) + (n * axes[d].out + o) * inner, inner, fill);
  }
}

Tensor interpolated(const Resize::Attrs& a, const Tensor& x, const std::vector<ResizeAxis>& axes) {
  Tensor y = x.cast(DType::f64);
  for (size_t d = 0; d < axes.size(); ++d)
    if (!axes[d].is_identity(a.coordinate_transformation_mode)) y = interpolated_axis(a, y, d, axes[d]);
  fill_outside(a, axes, x.dtype(), y);
  return rounded(std::move(y), x.dtype());
}

}  // namespace

bool ResizeAxis::is_identity(CoordinateMode mode) const {
  if (mode == CoordinateMode::tf_crop_and_resize) return in == out && roi_begin == 0 && roi_end == 1;
  return in == out && scale == 1;
}

double extrapolated(const Resize::Attrs& attrs, DType dtype) {
  const double value = attrs.extrapolation_value;
  return is_float(dtype) ? value : static_cast<double>(truncate_to(dtype, value));
}

std::pair<double, double> scale_quotient(ResizeMode mode, double scale) {
  constexpr int kLargest = 256;  // denominators: a coincidence among more would still be within single precision
  for (double from = 1; mode == ResizeMode::nearest && from <= kLargest; ++from)
    if (const double to = std::round(scale * from);
        to > 0 && static_cast<float>(to / from) == static_cast<float>(scale))
      return {from, to};
  return {1, scale};
}

double resize_coordinate(CoordinateMode mode, const ResizeAxis& axis, int64_t o) {
  const auto x = static_cast<double>(o);
  const double last = static_cast<double>(axis.in - 1);
  switch (mode) {
    case CoordinateMode::half_pixel:
      return axis.source(x + 0.5) - 0.5;
    case CoordinateMode::half_pixel_symmetric: {
      const double adjustment = static_cast<double>(axis.out) / axis.length;
      return static_cast<double>(axis.in) / 2 * (1 - adjustment) + axis.source(x + 0.5) - 0.5;
    }
    case CoordinateMode::pytorch_half_pixel:
      return axis.out > 1 ? axis.source(x + 0.5) - 0.5 : 0;
    case CoordinateMode::align_corners:
      return axis.length == 1 || axis.out == 1 ? 0 : x * last / (axis.length - 1);
    case CoordinateMode::asymmetric:
      return axis.source(x);
    case CoordinateMode::tf_half_pixel_for_nn:
      return axis.source(x + 0.5);
    case CoordinateMode::tf_crop_and_resize:
      break;
  }
  if (axis.out == 1) return 0.5 * (axis.roi_begin + axis.roi_end) * last;
  return axis.roi_begin * last + x * (axis.roi_end - axis.roi_begin) * last / (axis.length - 1);
}

int64_t resize_nearest(NearestMode mode, double x) {
  switch (mode) {
    case NearestMode::round_prefer_floor:
      return static_cast<int64_t>(std::ceil(x - 0.5));
    case NearestMode::round_prefer_ceil:
      return static_cast<int64_t>(std::floor(x + 0.5));
    case NearestMode::floor:
      return static_cast<int64_t>(std::floor(x));
    case NearestMode::ceil:
      break;
  }
  return static_cast<int64_t>(std::ceil(x));
}

std::vector<ResizeAxis> resize_axes(const Resize::Attrs& a, const std::vector<int64_t>& x, const Tensor* roi,
                                    const Tensor* scales, const Tensor* sizes) {
  const std::vector<size_t> axes = listed_axes(a, x.size());
  std::vector<ResizeAxis> result;
  for (int64_t size : x) result.push_back({.in = size, .out = size, .scale = 1, .length = double(size)});
  if (sizes) {
    set_sizes(a, x, sizes->to_i64(), axes, result);
  } else {
    const std::vector<double> factors = scales_of(a, scales);
    check_count(factors.size(), axes, "scales");
    for (size_t i = 0; i < axes.size(); ++i) {
      ResizeAxis& r = result[axes[i]];
      r.scale = checked_scale(factors[i]);
      r.out = scaled(r.in, r.scale);
      std::tie(r.from, r.to) = scale_quotient(a.mode, r.scale);
      r.length = r.scale * static_cast<double>(r.in);
    }
  }
  if (a.coordinate_transformation_mode == CoordinateMode::tf_crop_and_resize) {
    if (!roi) throw fail(E::arity_mismatch, "tf_crop_and_resize needs the operand roi");
    check_count(static_cast<size_t>(roi->elements()) / 2, axes, "roi");
    for (size_t i = 0; i < axes.size(); ++i) {
      result[axes[i]].roi_begin = roi->real(int64_t(i));
      result[axes[i]].roi_end = roi->real(int64_t(i + axes.size()));
    }
  }
  return result;
}

OpSpec Resize::spec() {
  return {.name = "resize",
          .inputs = {{"x"}, optional_port("roi"), optional_port("scales"), optional_port("sizes")},
          .outputs = {{"y"}},
          .kind = OpKind::injective,
          .flops_per_element = 0,
          .doc = "Nearest, linear or cubic resampling."};
}

std::vector<TensorType> Resize::infer(const Attrs& a, const Inference& in) {
  require_numeric(in, 0);
  if (!in.shape(0).ranked) return unranked(in, in.dtype(0));
  Shape y = in.shape(0);
  const bool by_sizes = in.has(3), by_scales = in.has(2) || !a.scales.empty();
  if (by_sizes == by_scales) throw fail(E::arity_mismatch, "exactly one of scales and sizes is needed");
  if (in.has(2) && !in.constant(2))
    throw fail(E::unknown_dimension, "the operand scales must be constant").hint("fold constants, or give sizes");
  const auto given_sizes = by_sizes ? in.dims(3) : std::nullopt;
  const Tensor* sizes = by_sizes ? in.constant(3) : nullptr;
  Tensor known_sizes;
  if (by_sizes && !sizes && given_sizes) {  // sizes computed from shapes that turned out to be constant
    std::vector<int64_t> values;
    for (const Dim& d : *given_sizes)
      if (d.is_constant()) values.push_back(d.value());
    if (values.size() == given_sizes->size()) sizes = &(known_sizes = Tensor::from_i64(values));
  }
  if (y.is_static() && (!by_sizes || sizes)) {
    Attrs plain = a;  // extents do not depend on the roi
    if (!in.constant(1) && a.coordinate_transformation_mode == CoordinateMode::tf_crop_and_resize)
      plain.coordinate_transformation_mode = CoordinateMode::asymmetric;
    const auto axes = resize_axes(plain, y.sizes(), in.constant(1), in.constant(2), sizes);
    for (size_t i = 0; i < y.rank(); ++i) y[i] = axes[i].out;
    return {{in.dtype(0), y}};
  }
  const std::vector<size_t> axes = listed_axes(a, y.rank());
  if (by_sizes) {
    const std::vector<Dim> dims = in.require_dims(3, "sizes");
    check_count(dims.size(), axes, "sizes");
    for (size_t i = 0; i < axes.size(); ++i) {
      if (a.keep_aspect_ratio_policy != AspectPolicy::stretch && !(dims[i] == y[axes[i]]))
        throw fail(E::unknown_dimension, "keep_aspect_ratio_policy needs constant extents, not {}", y.text());
      assume(DimRule::at_least, y[axes[i]], min(dims[i], Dim(1)), "an empty axis has no element to resample");
      y[axes[i]] = dims[i];
    }
  } else {
    const std::vector<double> factors = scales_of(a, in.constant(2));
    check_count(factors.size(), axes, "scales");
    for (size_t i = 0; i < axes.size(); ++i) y[axes[i]] = scaled(y[axes[i]], checked_scale(factors[i]));
  }
  return {{in.dtype(0), y}};
}

std::vector<Tensor> Resize::reference(const Attrs& a, Tensors in, Precision) {
  const auto given = [&](size_t i) { return i < in.size() ? in[i] : nullptr; };
  const auto axes = resize_axes(a, in[0]->sizes(), given(1), given(2), given(3));
  return {a.mode == ResizeMode::nearest ? nearest(a, *in[0], axes) : interpolated(a, *in[0], axes)};
}

/// A product and a sum per tap and resized axis, as if axes were resampled one after the other. Nearest computes
/// nothing.
Cost Resize::cost(const Attrs& a, std::span<const TensorType> in, std::span<const TensorType> out) {
  const Shape &x = in[0].shape, &y = out[0].shape;
  if (a.mode == ResizeMode::nearest || !x.ranked || !y.ranked) return {};
  int64_t axes = 0;
  for (size_t i = 0; i < y.rank(); ++i) axes += !(x[i] == y[i]);
  return {.flops = y.elements() * Dim((a.mode == ResizeMode::cubic ? 8 : 3) * axes)};
}

}  // namespace opfuse
