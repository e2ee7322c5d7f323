// The formulas of ops/resize.cpp and ops/resize_taps.cpp, in double: a position rounds like the tables do.
#include "region/open_resize.hpp"

#include "region/index_map.hpp"

namespace opfuse {
namespace {

Expr number(double value) { return Expr::constant(DType::f64, value); }
Expr real(const Dim& dim) { return cast(dim_value(dim), DType::f64); }

/// The scale is to / from; with sizes these are the extents.
Expr position(const Resize::Attrs& attrs, const Expr& o, const Expr& in, const Expr& out, std::optional<double> scale) {
  const auto [denominator, numerator] = scale_quotient(attrs.mode, scale.value_or(1));
  const Expr from = scale ? number(denominator) : in, to = scale ? number(numerator) : out;
  const Expr centred = (o + number(0.5)) * from / to, length = scale ? in * number(*scale) : out;
  switch (attrs.coordinate_transformation_mode) {
    case CoordinateMode::half_pixel_symmetric:
      return in * number(0.5) * (number(1) - out / length) + centred - number(0.5);
    case CoordinateMode::pytorch_half_pixel:
      return select(greater(out, number(1)), centred - number(0.5), number(0));
    case CoordinateMode::align_corners: {
      const Expr one = logical_or(equal(length, number(1)), equal(out, number(1)));
      return select(one, number(0), o * (in - number(1)) / (length - number(1)));
    }
    case CoordinateMode::asymmetric:
      return o * from / to;
    case CoordinateMode::tf_half_pixel_for_nn:
      return centred;
    default:
      return centred - number(0.5);
  }
}

/// Weight of a tap at distance d >= 0, which is below 1 (`near`) or from 1 to 2.
Expr cubic(const Expr& d, double a, bool near) {
  if (near) return ((number(a + 2) * d - number(a + 3)) * d) * d + number(1);
  return ((number(a) * d - number(5 * a)) * d + number(8 * a)) * d - number(4 * a);
}

}  // namespace

OpenResizeAxis::OpenResizeAxis(const Resize::Attrs& attrs, const Dim& in, const Dim& out, std::optional<double> scale,
                               const Expr& coordinate)
    : attrs_(attrs), last_(dim_value(in - Dim(1))) {
  x_ = position(attrs, cast(coordinate, DType::f64), real(in), real(out), scale);
}

bool OpenResizeAxis::covers(const Resize::Attrs& attrs, std::optional<double> scale) {
  const bool widened = attrs.antialias && !(scale && *scale >= 1);
  return attrs.coordinate_transformation_mode != CoordinateMode::tf_crop_and_resize && !attrs.exclude_outside &&
         (attrs.mode == ResizeMode::nearest || !widened);
}

Expr OpenResizeAxis::inside(const Expr& at) const {
  return minimum(maximum(cast(at, DType::i64), dim_value(Dim(0))), last_);
}

Expr OpenResizeAxis::nearest() const {
  switch (attrs_.nearest_mode) {
    case NearestMode::round_prefer_ceil:
      return inside(floor(x_ + number(0.5)));
    case NearestMode::floor:
      return inside(floor(x_));
    case NearestMode::ceil:
      return inside(ceil(x_));
    default:
      return inside(ceil(x_ - number(0.5)));
  }
}

std::vector<OpenTap> OpenResizeAxis::taps() const {
  const Expr low = floor(x_), t = x_ - low, rest = number(1) - t;
  if (attrs_.mode == ResizeMode::linear) return {{inside(low), rest}, {inside(low + number(1)), t}};
  const double a = attrs_.cubic_coeff_a;
  return {{inside(low - number(1)), cubic(t + number(1), a, false)},
          {inside(low), cubic(t, a, true)},
          {inside(low + number(1)), cubic(rest, a, true)},
          {inside(low + number(2)), cubic(rest + number(1), a, false)}};
}

}  // namespace opfuse
