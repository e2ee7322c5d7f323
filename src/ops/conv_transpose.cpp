// Transposed convolution: per image and group, weights' [C, O * taps] times the image [C, positions] gives what every
// position adds to every tap; the additions follow, position chunk by position chunk so that memory stays small.
#include "ops/conv_transpose.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "base/parallel.hpp"
#include "ops/checks.hpp"
#include "ops/gemm_f64.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {
namespace {

constexpr int64_t kChunk = 1024;  // positions whose taps are held at a time

void check_counts(const ConvTranspose::Attrs& a, size_t spatial) {
  const auto check = [&](const std::vector<int64_t>& list, size_t expected, int64_t least, const char* name) {
    if (list.empty()) return;
    if (list.size() != expected)
      throw fail(E::bad_attribute, "{} has {} values, expected {}", name, list.size(), expected);
    for (int64_t v : list)
      if (v < least) throw fail(E::bad_attribute, "{} contains {}; at least {} is expected", name, v, least);
  };
  check(a.strides, spatial, 1, "strides");
  check(a.dilations, spatial, 1, "dilations");
  check(a.pads, 2 * spatial, 0, "pads");
  check(a.output_padding, spatial, 0, "output_padding");
  check(a.output_shape, spatial, 1, "output_shape");
}

/// The roles of in and out are those of the operator: in -> out; a tap writes p * stride - pad_begin + t * dilation.
WindowAxis resolve_axis(const ConvTranspose::Attrs& a, const Dim& in, int64_t kernel, size_t i, size_t spatial) {
  WindowAxis w{.in = in, .out = 0, .kernel = kernel};
  if (!a.strides.empty()) w.stride = a.strides[i];
  if (!a.dilations.empty()) w.dilation = a.dilations[i];
  const Dim extra = a.output_padding.empty() ? 0 : a.output_padding[i];
  const Dim full = (in - 1) * Dim(w.stride) + extra + Dim(kernel - 1) * Dim(w.dilation) + 1;
  const bool same = a.auto_pad == AutoPad::same_upper || a.auto_pad == AutoPad::same_lower;
  if (same || !a.output_shape.empty()) {
    w.out = a.output_shape.empty() ? in * Dim(w.stride) : Dim(a.output_shape[i]);
    const Dim total = max(full - w.out, Dim(0)), half = floor_div(total, 2);
    w.pad_begin = a.auto_pad == AutoPad::same_upper ? half : total - half;
    w.pad_end = total - w.pad_begin;
    return w;
  }
  if (a.auto_pad == AutoPad::notset && !a.pads.empty()) {
    w.pad_begin = a.pads[i];
    w.pad_end = a.pads[i + spatial];
  }
  w.out = full - w.pad_begin - w.pad_end;
  if (w.out.is_constant() && w.out.value() < 0)
    throw fail(E::shape_mismatch, "pads remove more than the {} elements of output axis {}", full.text(), i);
  return w;
}

std::vector<WindowAxis> resolve(const ConvTranspose::Attrs& a, const Shape& x, const Shape& w) {
  const size_t spatial = x.rank() - 2;
  check_counts(a, spatial);
  std::vector<WindowAxis> axes;
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t kernel = w[i + 2].value();
    if (!a.kernel_shape.empty() && (a.kernel_shape.size() != spatial || a.kernel_shape[i] != kernel))
      throw fail(E::bad_attribute, "kernel_shape is {}, the weights have shape {}", text_of(a.kernel_shape), w.text());
    axes.push_back(resolve_axis(a, x[i + 2], kernel, i, spatial));
  }
  return axes;
}

/// Adds columns[(o * taps + t) * kChunk + p - p0] of positions [p0, p1) into y.
void add_columns(const std::vector<WindowSizes>& axes, const double* columns, int64_t rows, int64_t p0, int64_t p1,
                 int64_t outputs, double* y) {
  int64_t taps = 1;
  for (const WindowSizes& a : axes) taps *= a.kernel;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t p = p0; p < p1; ++p) {
      int64_t tap = r % taps, at = p, to = 0, pitch = 1;
      bool inside = true;
      for (size_t i = axes.size(); i-- > 0;) {
        const WindowSizes& a = axes[i];
        const int64_t c = at % a.in * a.stride - a.pad_begin + tap % a.kernel * a.dilation;
        inside &= c >= 0 && c < a.out;
        to += c * pitch;
        pitch *= a.out;
        at /= a.in;
        tap /= a.kernel;
      }
      if (inside) y[r / taps * outputs + to] += columns[r * kChunk + p - p0];
    }
}

}  // namespace

OpSpec ConvTranspose::spec() {
  return {.name = "conv_transpose",
          .inputs = {{"x"}, {"w"}, optional_port("b")},
          .outputs = {{"y"}},
          .kind = OpKind::contraction,
          .doc = "Transposed convolution."};
}

std::vector<WindowAxis> ConvTranspose::window(const Attrs& a, const Shape& x, const Shape& w) {
  return resolve(a, x, w);
}

std::vector<TensorType> ConvTranspose::infer(const Attrs& a, const Inference& in) {
  require_float(in, 0);
  require_same_dtype(in, 0, 1);
  require_same_dtype(in, 0, 2);
  if (a.group < 1) throw fail(E::bad_attribute, "group is {}; at least 1 is expected", a.group);
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  require_min_rank(in, 0, 3);
  const Shape &x = in.shape(0), &w = in.shape(1);
  in.require_rank(1, x.rank());
  if (!may_equal(x[1], w[0]))
    throw fail(E::channel_mismatch, "input has {} channels but the weights expect {}", x[1].text(), w[0].text())
        .hint("weights are [in, out/group, kernel...]");
  assume(DimRule::equal, x[1], w[0], "the input has the channels that the weights expect");
  if (w[0].is_constant() && w[0].value() % a.group != 0)
    throw fail(E::channel_mismatch, "{} channels cannot be split into {} groups", w[0].text(), a.group);
  assume(DimRule::multiple, w[0], a.group, "channels are split into groups");
  const Dim out = w[1] * Dim(a.group);
  if (in.has(2)) require_vector(in, 2, out, "the bias");
  std::vector<Dim> y = {x[0], out};
  for (const WindowAxis& axis : resolve(a, x, w)) y.push_back(axis.out);
  return {{in.dtype(0), Shape(std::move(y))}};
}

std::vector<Tensor> ConvTranspose::reference(const Attrs& a, Tensors in, Precision) {
  const Reals x(*in[0]), w(*in[1]);
  const auto axes = concrete(resolve(a, Shape::of(in[0]->sizes()), Shape::of(in[1]->sizes())));
  const int64_t batch = in[0]->dim(0), channels = in[0]->dim(1), depth = channels / a.group;
  const int64_t positions = product(in[0]->sizes(), 2, in[0]->rank()), rows = product(in[1]->sizes(), 1, in[1]->rank());
  const int64_t per_group = in[1]->dim(1), out = per_group * a.group;
  std::vector<int64_t> sizes = {batch, out};
  for (const WindowSizes& axis : axes) sizes.push_back(axis.out);
  const int64_t outputs = product(sizes, 2, sizes.size());
  Tensor y(DType::f64, sizes);
  double* to = reals(y);
  if (in.size() > 2 && in[2]) {
    const Reals b(*in[2]);
    for (int64_t i = 0; i < batch * out; ++i) std::fill_n(to + i * outputs, outputs, b[i % out]);
  }
  parallel_for(batch * a.group, [&](int64_t task) {
    const int64_t n = task / a.group, g = task % a.group;
    std::vector<double> columns(static_cast<size_t>(rows * kChunk));
    for (int64_t p0 = 0; p0 < positions; p0 += kChunk) {
      const int64_t p1 = std::min(positions, p0 + kChunk);
      std::fill(columns.begin(), columns.end(), 0.0);
      gemm_f64(rows, p1 - p0, depth, {w.data() + g * depth * rows, 1, rows},
               {x.data() + (n * channels + g * depth) * positions + p0, positions, 1}, columns.data(), kChunk, 1);
      add_columns(axes, columns.data(), rows, p0, p1, outputs, to + (n * out + g * per_group) * outputs);
    }
  });
  return {rounded(std::move(y), in[0]->dtype())};
}

Cost ConvTranspose::cost(const Attrs& a, std::span<const TensorType> in, std::span<const TensorType> out) {
  const Shape &x = in[0].shape, &w = in[1].shape;
  if (!x.ranked || !w.ranked) return {};
  // A tap counts when it lands inside the output: the window geometry with in and out exchanged.
  Dim macs = x[0] * w[0] * w[1];
  for (WindowAxis axis : resolve(a, x, w)) {
    std::swap(axis.in, axis.out);
    macs = macs * useful_taps(axis);
  }
  Cost cost{.flops = macs * Dim(2), .weight_bytes = bytes_of(in[1])};
  if (in.size() > 2 && in[2].dtype != DType::unknown) {
    cost.flops = cost.flops + out[0].shape.elements();
    cost.weight_bytes = cost.weight_bytes + bytes_of(in[2]);
  }
  return cost;
}

}  // namespace opfuse
