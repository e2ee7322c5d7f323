// Sliding windows: the geometry that convolution and pooling share.
//
//   in, padded by pad_begin and pad_end      . . x x x x x . .
//   window `kernel`, every `dilation`-th          k   k   k
//   moved by `stride`, `out` times            output o, tap t reads  o * stride - pad_begin + t * dilation
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ir/op_info.hpp"
#include "ops/declare.hpp"

namespace opfuse {

enum class AutoPad { notset, same_upper, same_lower, valid };
template <>
inline constexpr auto enum_names<AutoPad> = std::array{"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};

/// One spatial axis with its padding resolved. `in`, `out` and SAME padding may be symbolic.
struct WindowAxis {
  Dim in, out;
  int64_t kernel = 1, stride = 1, dilation = 1;
  Dim pad_begin = 0, pad_end = 0;
  bool fits = false;  ///< known without the extents: every window lies inside the padded input
  /// No tap falls into padding, whatever the extents.
  bool inside() const { return fits && pad_begin == Dim(0) && pad_end == Dim(0); }
};

/// What the attributes of every windowed operator begin with. An empty list means all ones (strides, dilations), zeros
/// (pads) or the weights' extents (a convolution's kernel_shape).
struct WindowAttrs {
  AutoPad auto_pad = AutoPad::notset;
  std::vector<int64_t> dilations;
  std::vector<int64_t> kernel_shape;
  std::vector<int64_t> pads;  ///< ONNX's: all begins, then all ends
  std::vector<int64_t> strides;
  static void each(auto& s, auto&& field) {
    field("auto_pad", s.auto_pad);
    field("dilations", s.dilations);
    field("kernel_shape", s.kernel_shape);
    field("pads", s.pads);
    field("strides", s.strides);
  }
};

/// Where windows end.
enum class LastWindow {
  inside,     ///< within the padded input: a convolution
  cut,        ///< likewise, but a pool's first window takes what there is of a fixed extent smaller than it
  beginning,  ///< begins within the input and may end behind the padding: a pool in ceil_mode
};

/// The one place where padding and output extents are computed, for windows of `kernel` over `x` = [N, C, spatial...].
/// Checks counts and signs (E::bad_attribute) and that the window fits (E::shape_mismatch).
std::vector<WindowAxis> resolve_pads(const WindowAttrs& attrs, const std::vector<int64_t>& kernel, const Shape& x,
                                     LastWindow last = LastWindow::inside);

/// Concrete form for reference kernels.
struct WindowSizes {
  int64_t in, out, kernel, stride, dilation, pad_begin, pad_end;
  /// First tap at or after 0 and one past the last tap below `in`, for output `o`.
  int64_t first_tap(int64_t o) const;
  int64_t last_tap(int64_t o) const;
};
std::vector<WindowSizes> concrete(const std::vector<WindowAxis>& axes);

/// (output, tap) pairs of one axis whose tap lies inside the input: sum over outputs of useful taps, in closed form.
/// A tap t reads o * stride + t * dilation - pad_begin; the count of o in [0, out) with that in [0, in) is exact for
/// symbolic extents too (up to 256 taps; a longer window on a symbolic axis counts all its taps).
Dim useful_taps(const WindowAxis& axis);

}  // namespace opfuse
