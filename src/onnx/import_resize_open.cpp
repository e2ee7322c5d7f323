// Resize with antialiasing along open axes: how many elements a widened filter takes is not known, so each axis is
// multiplied by all of its weights, computed by the run. With scale = out / in and c_o = (o + 0.5) / scale - 0.5
//   y[.., o, ..] = sum_i W[o, i] x[.., i, ..]      W[o, i] = w((i - c_o) min(scale, 1)), divided by the sum of its row
// This is exclude_outside = 1: only elements of the image are weighed, none beyond its edge.
#include "onnx/import_resize_open.hpp"

#include "ir/dim_values.hpp"
#include "onnx/import_spelled.hpp"

namespace opfuse::onnx {
namespace {

constexpr DType kReal = DType::f64;  // of positions

/// 0, 1 .. along an axis of `size`, [1] -> f64[size]
Value* counted(Speller& s, Value* size) {
  Value* end = s.reshape(size, {});
  return s.cast(s.op("range", {s.number(0, DType::i64), end, s.number(1, DType::i64)}), kReal);
}

/// w(d) for d >= 0, as in ops/resize_taps.cpp.
Value* weight_of(Speller& s, const Resize::Attrs& attrs, Value* d) {
  const auto number = [&](double v) { return s.number(v, kReal); };
  const auto mul = [&](Value* a, Value* b) { return s.op("mul", {a, b}); };
  const auto add = [&](Value* a, double b) { return s.op("add", {a, number(b)}); };
  if (attrs.mode == ResizeMode::linear) return s.op("relu", {s.op("sub", {number(1), d})});
  const double a = attrs.cubic_coeff_a;
  Value* near = add(mul(mul(add(mul(d, number(a + 2)), -(a + 3)), d), d), 1);
  Value* far = add(mul(add(mul(add(mul(d, number(a)), -5 * a), d), 8 * a), d), -4 * a);
  Value* within = s.op("where", {s.op("less", {d, number(2)}), far, number(0)});
  return s.op("where", {s.op("less_or_equal", {d, number(1)}), near, within});
}

/// W of the axis, [out, in].
Value* weights(Speller& s, const Resize::Attrs& attrs, Value* x, int64_t axis, Value* out) {
  const auto number = [&](double v) { return s.number(v, kReal); };
  Value* in = s.size_of(x, axis);
  Value *from = s.cast(in, kReal), *to = s.cast(out, kReal);
  Value* centred = s.op("div", {s.op("mul", {s.op("add", {counted(s, out), number(0.5)}), from}), to});
  Value* at = s.unsqueeze(s.op("sub", {centred, number(0.5)}), 1);
  Value* scale = s.op("min", {s.op("div", {to, from}), number(1)});
  Value* apart = s.op("mul", {s.op("sub", {s.unsqueeze(counted(s, in), 0), at}), scale});
  Value* w = weight_of(s, attrs, s.op("abs", {apart}));
  Value* sum = s.op("reduce_sum", {w, s.integers({1})}, {{"keepdims", true}});
  return s.cast(s.op("div", {w, sum}), x->type.dtype);
}

/// x with `axis` multiplied by W.
Value* multiplied(Speller& s, Value* x, int64_t axis, Value* w) {
  const auto rank = static_cast<int64_t>(x->type.shape.rank());
  if (axis == rank - 2) return s.op("matmul", {w, x});
  std::vector<int64_t> turned;  // the axis and the last one change places
  for (int64_t i = 0; i < rank; ++i) turned.push_back(i == axis ? rank - 1 : i == rank - 1 ? axis : i);
  Value* y = axis == rank - 1 ? x : s.transpose(x, turned);
  y = s.op("matmul", {y, s.transpose(w, {1, 0})});
  return axis == rank - 1 ? y : s.transpose(y, turned);
}

}  // namespace

Value* resized_openly(NodeImport& n, const Resize::Attrs& attrs) {
  Value *x = n.required(0), *sizes = n.input(3);
  const bool applies = attrs.antialias && attrs.exclude_outside && attrs.mode != ResizeMode::nearest &&
                       attrs.coordinate_transformation_mode == CoordinateMode::half_pixel &&
                       attrs.keep_aspect_ratio_policy == AspectPolicy::stretch;
  if (!applies || !sizes || !is_float(x->type.dtype) || !x->type.shape.ranked) return nullptr;
  const auto wanted = dim_values(*sizes);
  const auto rank = static_cast<int64_t>(x->type.shape.rank());
  if (!wanted || wanted->size() != (attrs.axes.empty() ? x->type.shape.rank() : attrs.axes.size())) return nullptr;
  bool open = false;
  std::vector<std::pair<int64_t, int64_t>> changed;  // axis, place of its size
  for (size_t place = 0; place < wanted->size(); ++place) {
    int64_t axis = attrs.axes.empty() ? static_cast<int64_t>(place) : attrs.axes[place];
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return nullptr;
    const Dim &in = x->type.shape[static_cast<size_t>(axis)], &out = (*wanted)[place];
    if (in == out) continue;
    open = open || !in.is_constant() || !out.is_constant();
    changed.emplace_back(axis, static_cast<int64_t>(place));
  }
  if (!open) return nullptr;
  Speller s(n);
  const DType dtype = x->type.dtype;
  Value* y = byte_size(dtype) < 4 ? s.cast(x, DType::f32) : x;
  for (const auto& [axis, place] : changed)
    y = multiplied(s, y, axis, weights(s, attrs, y, axis, s.slice(sizes, 0, place, place + 1)));
  return s.cast(y, dtype);
}

}  // namespace opfuse::onnx
