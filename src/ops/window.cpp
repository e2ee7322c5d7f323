// Padding, output extents and useful taps of sliding windows. Output extents:
//   explicit    floor((in + begin + end - reach) / stride) + 1,  reach = (kernel - 1) * dilation + 1
//   ceil_mode   the same with ceil, but a window that would start in the end padding is dropped
//   pools       a negative numerator is rounded to 0, as ONNX's inference and ONNX Runtime do: one window that is cut,
//               or none. Rounded down with strides, that is asked of fixed extents alone: open ones would pay for a
//               guard in every window, and have to hold one
//   SAME        ceil(in / stride), the padding follows, the odd one at the end (UPPER) or begin (LOWER)
#include "ops/window.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "base/limits.hpp"
#include "ops/checks.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {
namespace {

/// One term each in an expression of cost, which no result depends on: longer windows count the taps in the padding
/// too.
constexpr int64_t kMaxSymbolicTaps = 256;

void check_list(const std::vector<int64_t>& list, size_t expected, int64_t least, const char* name) {
  if (list.empty()) return;
  if (list.size() != expected)
    throw fail(E::bad_attribute, "{} has {} values, expected {}", name, list.size(), expected)
        .hint(
            fmt::format("the operand has {} spatial axes", std::string_view(name) == "pads" ? expected / 2 : expected));
  for (int64_t v : list)
    if (v < least) throw fail(E::bad_attribute, "{} contains {}; at least {} is expected", name, v, least);
}

void check_auto_pads(const WindowAttrs& a) {
  if (a.auto_pad == AutoPad::notset) return;
  if (std::any_of(a.pads.begin(), a.pads.end(), [](int64_t p) { return p != 0; }))
    throw fail(E::bad_attribute, "both auto_pad = {} and pads are given", enum_names<AutoPad>[size_t(a.auto_pad)])
        .hint("ONNX allows only one of them");
}

Error no_room(const WindowAxis& w, const Dim& reach, size_t axis) {
  return fail(E::shape_mismatch, "the window does not fit: it reaches over {} elements, the padded axis {} has {}",
              reach.text(), axis, (w.in + w.pad_begin + w.pad_end).text());
}

constexpr const char* kOrFixed = " (a smaller one that --dim fixes is cut, as ONNX Runtime does)";
std::string fits_into(size_t axis) { return fmt::format("the window fits into padded axis {}", axis); }

/// A pool's window need not fit. Checked: how many there are is not negative, and none sees padding alone.
void check_cut(const WindowAxis& w, const Dim& room, const Dim& reach, size_t axis) {
  const Dim padded = w.in + w.pad_begin + w.pad_end;
  if (room.is_constant() && room.value() <= -2 * w.stride) throw no_room(w, reach, axis);
  const bool steps_over = w.dilation > 1 && !(w.pad_begin + w.pad_end == Dim(0));  // taps in the padding on both sides
  assume(DimRule::at_least, padded,
         steps_over ? reach : max(reach + Dim(1 - 2 * w.stride), w.pad_begin + w.pad_end + Dim(1)), fits_into(axis));
}

WindowAxis resolve_axis(const WindowAttrs& a, int64_t kernel, LastWindow last, const Dim& in, size_t i,
                        size_t spatial) {
  WindowAxis w{.in = in, .out = 0, .kernel = kernel};
  if (!a.strides.empty()) w.stride = a.strides[i];
  if (!a.dilations.empty()) w.dilation = a.dilations[i];
  const Dim reach = Dim(w.kernel - 1) * Dim(w.dilation) + Dim(1);
  if (a.auto_pad == AutoPad::same_upper || a.auto_pad == AutoPad::same_lower) {
    w.out = ceil_div(in, w.stride);
    const Dim total = max((w.out - 1) * Dim(w.stride) + reach - in, Dim(0));
    const Dim small = floor_div(total, 2);
    w.pad_begin = a.auto_pad == AutoPad::same_upper ? small : total - small;
    w.pad_end = total - w.pad_begin;
    w.fits = true;  // padded by what it needs
    return w;
  }
  if (a.auto_pad == AutoPad::notset && !a.pads.empty()) {
    w.pad_begin = a.pads[i];
    w.pad_end = a.pads[i + spatial];
  }
  const Dim room = in + w.pad_begin + w.pad_end - reach;
  const bool cut = last != LastWindow::inside && room.is_constant() && room.value() < 0;
  w.fits = !cut && (last != LastWindow::beginning || w.stride == 1);
  if (last == LastWindow::beginning || cut || (last == LastWindow::cut && w.stride == 1))
    check_cut(w, room, reach, i);
  else if (room.is_constant() && room.value() < 0)
    throw no_room(w, reach, i);
  else
    assume(DimRule::at_least, in + w.pad_begin + w.pad_end, reach,
           fits_into(i) + (last == LastWindow::cut ? kOrFixed : ""));
  if (last == LastWindow::beginning)
    w.out = min(ceil_div(room, w.stride) + 1, ceil_div(in + w.pad_begin, w.stride));
  else
    w.out = (cut ? ceil_div(room, w.stride) : floor_div(room, w.stride)) + 1;
  return w;
}

}  // namespace

std::vector<WindowAxis> resolve_pads(const WindowAttrs& a, const std::vector<int64_t>& kernel, const Shape& x,
                                     LastWindow last) {
  if (x.rank() < 3) throw fail(E::rank_mismatch, "operand 0 has shape {}; [N, C, spatial...] is expected", x.text());
  const size_t spatial = x.rank() - 2;
  if (kernel.size() != spatial)
    throw fail(E::bad_attribute, "kernel_shape has {} values, the operand has {} spatial axes", kernel.size(), spatial);
  check_list(kernel, spatial, 1, "kernel_shape");
  check_list(a.strides, spatial, 1, "strides");
  check_list(a.dilations, spatial, 1, "dilations");
  check_list(a.pads, 2 * spatial, 0, "pads");
  for (int64_t k : kernel)
    if (const int64_t most = limits_in_force().window_taps; k > most)
      throw fail(E::bad_attribute, "a window of {} taps along one axis, at most {} are taken", k, most)
          .hint("where this is meant, " + how_to_raise("window_taps"));
  check_auto_pads(a);
  std::vector<WindowAxis> axes;
  for (size_t i = 0; i < spatial; ++i) axes.push_back(resolve_axis(a, kernel[i], last, x[i + 2], i, spatial));
  return axes;
}

std::vector<WindowSizes> concrete(const std::vector<WindowAxis>& axes) {
  std::vector<WindowSizes> sizes;
  for (const WindowAxis& a : axes)
    sizes.push_back(
        {a.in.value(), a.out.value(), a.kernel, a.stride, a.dilation, a.pad_begin.value(), a.pad_end.value()});
  return sizes;
}

int64_t WindowSizes::first_tap(int64_t o) const {
  const int64_t begin = o * stride - pad_begin;
  return begin >= 0 ? 0 : std::min(kernel, (-begin + dilation - 1) / dilation);
}

int64_t WindowSizes::last_tap(int64_t o) const {
  const int64_t room = in - (o * stride - pad_begin);  // taps t with t * dilation < room
  return room <= 0 ? 0 : std::min(kernel, (room + dilation - 1) / dilation);
}

Dim useful_taps(const WindowAxis& a) {
  if (a.inside() || (!a.in.is_constant() && a.kernel > kMaxSymbolicTaps)) return a.out * Dim(a.kernel);
  Dim sum = 0;
  for (int64_t t = 0; t < a.kernel; ++t) {
    const Dim offset = a.pad_begin - Dim(t) * Dim(a.dilation);
    const Dim first = max(ceil_div(offset, a.stride), Dim(0));
    const Dim end = min(ceil_div(a.in + offset, a.stride), a.out);
    sum = sum + max(end - first, Dim(0));
  }
  return sum;
}

}  // namespace opfuse
