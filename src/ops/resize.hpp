// Resampling of a tensor, nearest, linear or cubic, in every ONNX coordinate mode. Upsample (opset 7-9) and Resize 10
// are this with coordinate mode asymmetric and nearest mode floor (ceil where Resize 10 shrinks).
#pragma once

#include <array>

#include "ops/declare.hpp"

namespace opfuse {

enum class ResizeMode { nearest, linear, cubic };
template <>
inline constexpr auto enum_names<ResizeMode> = std::array{"nearest", "linear", "cubic"};

enum class CoordinateMode {
  half_pixel,
  half_pixel_symmetric,
  pytorch_half_pixel,
  align_corners,
  asymmetric,
  tf_half_pixel_for_nn,
  tf_crop_and_resize
};
template <>
inline constexpr auto enum_names<CoordinateMode> =
    std::array{"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
               "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};

enum class NearestMode { round_prefer_floor, round_prefer_ceil, floor, ceil };
template <>
inline constexpr auto enum_names<NearestMode> = std::array{"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};

enum class AspectPolicy { stretch, not_larger, not_smaller };
template <>
inline constexpr auto enum_names<AspectPolicy> = std::array{"stretch", "not_larger", "not_smaller"};

/// Inputs x, roi (optional), scales (optional), sizes (optional); `scales` as attribute is Upsample 7's form.
struct Resize {
  struct Attrs {
    bool antialias = false;
    std::vector<int64_t> axes;
    CoordinateMode coordinate_transformation_mode = CoordinateMode::half_pixel;
    double cubic_coeff_a = -0.75;
    bool exclude_outside = false;
    double extrapolation_value = 0;
    AspectPolicy keep_aspect_ratio_policy = AspectPolicy::stretch;
    ResizeMode mode = ResizeMode::nearest;
    NearestMode nearest_mode = NearestMode::round_prefer_floor;
    std::vector<double> scales;
    static void each(auto& s, auto&& field) {
      field("antialias", s.antialias);
      field("axes", s.axes);
      field("coordinate_transformation_mode", s.coordinate_transformation_mode);
      field("cubic_coeff_a", s.cubic_coeff_a);
      field("exclude_outside", s.exclude_outside);
      field("extrapolation_value", s.extrapolation_value);
      field("keep_aspect_ratio_policy", s.keep_aspect_ratio_policy);
      field("mode", s.mode);
      field("nearest_mode", s.nearest_mode);
      field("scales", s.scales);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static Cost cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out);
};

/// One axis of a resize: output o reads the input at  x = map(o), for any mode.
///   half_pixel            (o + 0.5) / scale - 0.5                align_corners   o * (in - 1) / (length - 1)
///   pytorch_half_pixel    the same, 0 when out == 1              asymmetric      o / scale
///   half_pixel_symmetric  half_pixel around the centre           tf_crop_and_resize  inside the roi
struct ResizeAxis {
  int64_t in = 1, out = 1;
  double scale = 1;
  double roi_begin = 0, roi_end = 1;
  double length = 1;  ///< unrounded output length: in * scale, or out when sizes were given
  double from = 1,
         to = 1;  ///< scale as a quotient to / from, so that a source position that is whole is computed whole

  double source(double x) const { return x * from / to; }
  bool is_identity(CoordinateMode mode) const;  ///< every output reads its own position
};
double resize_coordinate(CoordinateMode mode, const ResizeAxis& axis, int64_t o);
/// {from, to} of a scale in single precision: {3, 8} of 2.6666667 for nearest, whose positions round; {1, scale} for
/// filters, and where no small denominator has it.
std::pair<double, double> scale_quotient(ResizeMode mode, double scale);
int64_t resize_nearest(NearestMode mode, double x);  ///< unclamped

/// The extrapolation value in the element type of the result: integers truncate and saturate, as casts do.
double extrapolated(const Resize::Attrs& attrs, DType dtype);

/// The axes of a resize of concrete size; sizes or scales come from the operands that are present.
std::vector<ResizeAxis> resize_axes(const Resize::Attrs& attrs, const std::vector<int64_t>& x, const Tensor* roi,
                                    const Tensor* scales, const Tensor* sizes);

}  // namespace opfuse
