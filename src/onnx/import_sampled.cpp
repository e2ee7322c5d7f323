// Operators that sample images between their pixels. Pixels lie as rows of channels, [pixels, channels], so that a
// sample is four gathers of rows and their weighted sum.
//   RoiAlign     means of samples on a grid in each box; a sample more than one pixel outside the image is 0. With mode
//                max the greatest of the four weighted pixels of all samples, as engines have it (no interpolation)
//   DeformConv   samples at taps that move by offsets, times a mask, then a product with the filters
#include "base/fail.hpp"
#include "onnx/import_spelled.hpp"
#include "onnx/known_shape.hpp"

namespace opfuse::onnx {
namespace {

using Results = std::vector<Value*>;
using Integers = std::vector<int64_t>;

void require_rank(const Value* x, size_t rank) {
  if (!x->type.shape.ranked || x->type.shape.rank() != rank)
    throw fail(E::unsupported_op, "an operand is {}; {} dimensions are expected", x->type.text(), rank);
}

/// The size of an axis, which may be open: a number to compute with.
class Extent {
 public:
  Extent(Speller& s, Value* x, int64_t axis)
      : s_(s),
        known_(x->type.shape[static_cast<size_t>(axis)].constant()),
        open_(known_ ? nullptr : s.reshape(s.size_of(x, axis), {})) {}

  std::optional<int64_t> known() const { return known_; }
  /// The size and `more`.
  Value* plus(int64_t more, DType dtype) const {
    if (known_) return s_.number(static_cast<double>(*known_ + more), dtype);
    Value* sum = more == 0 ? open_ : s_.op("add", {open_, s_.number(static_cast<double>(more), DType::i64)});
    return s_.cast(sum, dtype);
  }
  Value* times(const Extent& other) const {
    if (known_ && other.known_) return s_.number(static_cast<double>(*known_ * *other.known_), DType::i64);
    return s_.op("mul", {plus(0, DType::i64), other.plus(0, DType::i64)});
  }
  /// A vector of one, as shapes are made of.
  Value* as_size(int64_t factor = 1) const {
    if (known_) return s_.integers({*known_ * factor});
    return s_.op("mul", {s_.reshape(open_, {1}), s_.integers({factor})});
  }

 private:
  Speller& s_;
  std::optional<int64_t> known_;
  Value* open_;
};

class Sampler {
 public:
  /// `rows` [images * height * width, channels]; `image` numbers the images, and broadcasts to the samples.
  Sampler(Speller& s, Value* rows, Value* image, Extent height, Extent width, const char* joins = "add")
      : s_(s), rows_(rows), height_(height), width_(width), dtype_(rows->type.dtype), joins_(joins) {
    base_ = op("mul", image, height.times(width));
  }

  /// Pixels beyond the border are 0, each by itself.
  Value* with_zeros(Value* y, Value* x) { return sample(y, x, true); }

  /// Coordinates stay on the border; samples more than one pixel beyond it are 0.
  Value* clamped(Value* y, Value* x) {
    Value* inside = op("and", near(y, height_), near(x, width_));
    Value* value = sample(on_image(y, height_), on_image(x, width_), false);
    return s_.op("where", {s_.unsqueeze(inside, -1), value, real(0)});
  }

 private:
  Speller& s_;
  Value *rows_, *base_;
  Extent height_, width_;
  DType dtype_;
  const char* joins_;  ///< the four pixels of a sample

  Value* op(const char* name, Value* a, Value* b) { return s_.op(name, {a, b}); }
  Value* real(double value) { return s_.number(value, dtype_); }
  Value* whole(int64_t value) { return s_.number(static_cast<double>(value), DType::i64); }
  Value* clip(Value* x, Value* low, Value* high) { return op("min", op("max", x, low), high); }
  Value* on_image(Value* x, const Extent& size) { return clip(x, real(0), size.plus(-1, dtype_)); }
  Value* near(Value* x, const Extent& size) {
    return op("and", op("greater_or_equal", x, real(-1)), op("less_or_equal", x, size.plus(0, dtype_)));
  }
  Value* on_axis(Value* at, const Extent& size) {
    return op("and", op("greater_or_equal", at, whole(0)), op("less", at, size.plus(0, DType::i64)));
  }

  /// The row of pixel (y, x) times `weight`; 0 for those outside where `guarded`.
  Value* pixel(Value* y, Value* x, Value* weight, bool guarded) {
    Value *row = clip(y, whole(0), height_.plus(-1, DType::i64)),
          *column = clip(x, whole(0), width_.plus(-1, DType::i64));
    Value* at = op("add", op("add", base_, op("mul", row, width_.plus(0, DType::i64))), column);
    if (guarded) weight = s_.op("where", {op("and", on_axis(y, height_), on_axis(x, width_)), weight, real(0)});
    return op("mul", s_.op("gather", {rows_, at}, {{"axis", int64_t{0}}}), s_.unsqueeze(weight, -1));
  }

  Value* sample(Value* y, Value* x, bool guarded) {
    Value *top = s_.op("floor", {y}), *left = s_.op("floor", {x});
    Value *down = op("sub", y, top), *right = op("sub", x, left);
    Value *up = op("sub", real(1), down), *back = op("sub", real(1), right);
    Value *y0 = s_.cast(top, DType::i64), *x0 = s_.cast(left, DType::i64);
    Value *y1 = op("add", y0, whole(1)), *x1 = op("add", x0, whole(1));
    Value* first =
        op(joins_, pixel(y0, x0, op("mul", up, back), guarded), pixel(y0, x1, op("mul", up, right), guarded));
    Value* second =
        op(joins_, pixel(y1, x0, op("mul", down, back), guarded), pixel(y1, x1, op("mul", down, right), guarded));
    return op(joins_, first, second);
  }
};

/// [n, c, h, w] -> [n * h * w, c], channels cut into `groups` images: [n * groups * h * w, c / groups]
Value* rows_of(Speller& s, Value* x, int64_t groups) {
  const int64_t channels = known_size(x, 1) / groups;
  Value* planes = groups == 1 ? x : s.reshape(x, {-1, channels, 0, 0});
  return s.reshape(s.transpose(planes, {0, 2, 3, 1}), {-1, channels});
}

}  // namespace

namespace {

struct RoiAlign {
  int64_t rows = 1, columns = 1;
  double scale = 1, shift = 0;  ///< a coordinate is scale * x - shift
};

/// Begin and extent of each box along an axis, [boxes, 1, 1].
struct Reach {
  Value *low, *extent;
};

Reach reach_of(Speller& s, const RoiAlign& a, Value* boxes, int64_t from, int64_t to) {
  const DType dtype = boxes->type.dtype;
  const auto corner = [&](int64_t i) {
    Value* at = s.op("mul", {s.slice(boxes, 1, i, i + 1), s.number(a.scale, dtype)});
    return s.unsqueeze(s.op("sub", {at, s.number(a.shift, dtype)}), 2);
  };
  Value *low = corner(from), *extent = s.op("sub", {corner(to), low});
  if (a.shift == 0) extent = s.op("max", {extent, s.number(1, dtype)});
  return {low, extent};
}

/// 0, 1, .. along the last of `rank` axes.
Value* numbers(NodeImport& n, DType dtype, int64_t count, size_t rank) {
  Integers sizes(rank, 1);
  sizes.back() = count;
  Tensor t(dtype, sizes);
  for (int64_t i = 0; i < count; ++i) t.set_real(i, static_cast<double>(i));
  return n.constant(std::move(t));
}

/// As many as the extent and `more`.
Value* numbers(Speller& s, NodeImport& n, DType dtype, const Extent& extent, int64_t more, size_t rank) {
  if (const auto known = extent.known(); known && *known <= s.limits().index_elements)
    return numbers(n, dtype, *known + more, rank);
  Value* all = s.op("range", {s.number(0, DType::i64), extent.plus(more, DType::i64), s.number(1, DType::i64)});
  Integers shape(rank, 1);
  shape.back() = -1;
  return s.reshape(s.cast(all, dtype), shape);
}

/// What each pixel of an axis counts in the cells of a box, [boxes, cells, size], where a cell takes a sample per
/// pixel:
///
///   weight(c, h) = 1/n sum over i < n of near(y_i) max(0, 1 - |clamped(y_i) - h|)
///   y_i = low + bin c + (i + 1/2) step,  n = ceil(bin),  step = bin / n
///
/// Steps are above (n - 1) / n, so of size + 5 samples, the first of them just before the image, none near it is
/// missing.
Value* weights_of_pixels(Speller& s, NodeImport& node, const Reach& reach, int64_t cells, const Extent& size) {
  const DType dtype = reach.low->type.dtype;
  const auto real = [&](double v) { return s.number(v, dtype); };
  const auto op = [&](const char* name, Value* a, Value* b) { return s.op(name, {a, b}); };
  Value* bin = op("div", reach.extent, real(static_cast<double>(cells)));
  Value* some = op("greater", bin, real(0));
  bin = s.op("where", {some, bin, real(1)});
  Value *n = s.op("ceil", {bin}), *step = op("div", bin, n);
  Value* cell = s.op("transpose", {numbers(node, dtype, cells, 3)}, {{"perm", Integers{0, 2, 1}}});
  Value* start = op("add", reach.low, op("mul", bin, cell));
  Value* before = op("sub", op("div", op("sub", real(-1), start), step), real(0.5));
  Value* first = op("max", s.op("floor", {before}), real(0));
  Value* i = op("add", first, numbers(s, node, dtype, size, 5, 3));
  Value* y = op("add", start, op("mul", op("add", i, real(0.5)), step));
  Value* near = op("and", op("greater_or_equal", y, real(-1)), op("less_or_equal", y, size.plus(0, dtype)));
  Value* counts = op("and", op("and", near, some), op("less", i, n));
  Value* share = s.op("where", {counts, op("div", real(1), n), real(0)});
  Value* inside = op("min", op("max", y, real(0)), size.plus(-1, dtype));
  Value* away = s.op("abs", {op("sub", s.unsqueeze(inside, 3), numbers(s, node, dtype, size, 0, 4))});
  Value* hat = op("max", op("sub", real(1), away), real(0));
  return s.op("reduce_sum", {op("mul", hat, s.unsqueeze(share, 3)), s.integers({2})}, {{"keepdims", false}});
}

/// Means of as many samples as a cell has pixels: a product with the weights of rows, then one with those of columns.
Value* adaptive_means(Speller& s, NodeImport& n, const RoiAlign& a, Value* x, Value* boxes) {
  const int64_t channels = known_size(x, 1);
  const Extent height(s, x, 2), width(s, x, 3);
  Value* down = weights_of_pixels(s, n, reach_of(s, a, boxes, 1, 3), a.rows, height);
  Value* across = weights_of_pixels(s, n, reach_of(s, a, boxes, 0, 2), a.columns, width);
  if (!(x->type.shape[0] == Dim(1))) {  // rows of other images count 0
    Value* image = s.unsqueeze(s.cast(n.required(2), DType::i64), 1);
    Value* own = s.cast(s.op("equal", {image, positions_along(s, x, 0)}), x->type.dtype);
    down = s.op("mul", {s.unsqueeze(down, 2), s.op("unsqueeze", {own, s.integers({1, 3})})});
    Value* lines = s.op("mul", {s.size_of(x, 0), height.as_size()});
    down = s.op("reshape", {down, s.concat({s.integers({-1}), lines}, 0)});
  } else {
    down = s.op("reshape", {down, s.concat({s.integers({-1}), height.as_size()}, 0)});
  }
  Value* pixels =
      s.op("reshape", {s.transpose(x, {0, 2, 3, 1}), s.concat({s.integers({-1}), width.as_size(channels)}, 0)});
  Value* lines = s.op("reshape", {s.op("matmul", {down, pixels}),
                                  s.concat({s.integers({-1, a.rows}), width.as_size(), s.integers({channels})}, 0)});
  return s.transpose(s.op("matmul", {s.unsqueeze(across, 1), lines}), {0, 3, 1, 2});
}

}  // namespace

Results import_roi_align(NodeImport& n) {
  n.require_inputs(3, 3);
  Speller s(n);
  Value *x = n.required(0), *boxes = n.required(1);
  require_rank(x, 4);
  require_rank(boxes, 2);
  const DType dtype = x->type.dtype;
  const std::string mode = n.text("mode", "avg");
  const bool greatest = mode == "max";
  if (mode != "avg" && !greatest) throw fail(E::bad_attribute, "mode is \"{}\"", mode);
  const std::string form = n.text("coordinate_transformation_mode", n.opset >= 16 ? "half_pixel" : "output_half_pixel");
  if (form != "half_pixel" && form != "output_half_pixel")
    throw fail(E::bad_attribute, "coordinate_transformation_mode is \"{}\"", form);
  const RoiAlign a{n.integer("output_height", 1), n.integer("output_width", 1), n.real("spatial_scale", 1),
                   form == "half_pixel" ? 0.5 : 0};
  const int64_t rows = a.rows, columns = a.columns, samples = n.integer("sampling_ratio", 0);
  if (rows <= 0 || columns <= 0) throw fail(E::bad_attribute, "an output of {} x {}", rows, columns);
  if (samples <= 0 && greatest)
    throw fail(E::unsupported_attribute,
               "RoiAlign with mode max whose boxes decide the number of samples is not supported")
        .hint("export with sampling_ratio > 0, or with mode avg");
  if (samples <= 0) return {adaptive_means(s, n, a, x, boxes)};
  // Coordinates of all samples along one axis, [boxes, size * samples].
  const auto samples_along = [&](int64_t from, int64_t to, int64_t size) {
    const Reach reach = reach_of(s, a, boxes, from, to);
    Tensor at(dtype, {1, size, samples});
    for (int64_t i = 0; i < size * samples; ++i)
      at.set_real(i, (static_cast<double>(i) + 0.5) / static_cast<double>(size * samples));
    Value* all = s.op("add", {reach.low, s.op("mul", {reach.extent, n.constant(std::move(at))})});
    return s.reshape(all, {0, size * samples});
  };
  Value* y = s.unsqueeze(samples_along(1, 3, rows), 2);
  Value* across = s.unsqueeze(samples_along(0, 2, columns), 1);
  Value* image = s.op("unsqueeze", {s.cast(n.required(2), DType::i64), s.integers({1, 2})});
  Value* sampled =
      Sampler(s, rows_of(s, x, 1), image, {s, x, 2}, {s, x, 3}, greatest ? "max" : "add").clamped(y, across);
  sampled = s.reshape(sampled, {-1, rows, samples, columns, samples, known_size(x, 1)});
  const char* pooled = greatest ? "reduce_max" : "reduce_mean";
  return {s.transpose(s.op(pooled, {sampled, s.integers({2, 4})}, {{"keepdims", false}}), {0, 3, 1, 2})};
}

namespace {

struct DeformedWindow {
  Integers kernel, strides, pads, dilations;
  int64_t groups = 1, offset_groups = 1;
};

DeformedWindow window_of(NodeImport& n, const Value* weights) {
  DeformedWindow w{{known_size(weights, 2), known_size(weights, 3)},
                   n.integers("strides").value_or(Integers{1, 1}),
                   n.integers("pads").value_or(Integers{0, 0, 0, 0}),
                   n.integers("dilations").value_or(Integers{1, 1}),
                   n.integer("group", 1),
                   n.integer("offset_group", 1)};
  if (const auto given = n.integers("kernel_shape"); given && *given != w.kernel)
    throw fail(E::bad_attribute, "kernel_shape differs from the filters, {}", weights->type.text());
  if (w.strides.size() != 2 || w.pads.size() != 4 || w.dilations.size() != 2 || w.groups <= 0 || w.offset_groups <= 0)
    throw fail(E::bad_attribute, "DeformConv of other than two axes is not supported");
  return w;
}

/// Where taps lie along an axis before they move, [taps, rows, 1] or [taps, 1, columns].
Value* undeformed(Speller& s, NodeImport& n, const DeformedWindow& w, size_t axis, const Extent& places, DType dtype) {
  const int64_t taps = w.kernel[0] * w.kernel[1];
  Tensor of_taps(dtype, {taps, 1, 1});
  for (int64_t tap = 0; tap < taps; ++tap) {
    const int64_t step = axis == 0 ? tap / w.kernel[1] : tap % w.kernel[1];
    of_taps.set_real(tap, static_cast<double>(step * w.dilations[axis] - w.pads[axis]));
  }
  Value* at = numbers(s, n, dtype, places, 0, 3);
  if (axis == 0) at = s.transpose(at, {0, 2, 1});
  return s.op("add", {s.op("mul", {at, s.number(static_cast<double>(w.strides[axis]), dtype)}),
                      n.constant(std::move(of_taps))});
}

}  // namespace

Results import_deform_conv(NodeImport& n) {
  n.require_inputs(3, 5);
  Speller s(n);
  Value *x = n.required(0), *weights = n.required(1), *offset = n.required(2);
  require_rank(x, 4);
  require_rank(weights, 4);
  require_rank(offset, 4);
  const DeformedWindow w = window_of(n, weights);
  const DType dtype = x->type.dtype;
  const int64_t channels = known_size(x, 1), filters = known_size(weights, 0), taps = w.kernel[0] * w.kernel[1];
  const Extent rows(s, offset, 2), columns(s, offset, 3);
  const auto image_of = [&](Value* y, const Integers& sizes) {  // sizes, then those of the result's image
    return s.op("reshape", {y, s.concat({s.integers(sizes), rows.as_size(), columns.as_size()}, 0)});
  };
  if (channels % w.offset_groups != 0 || channels % w.groups != 0 || filters % w.groups != 0)
    throw fail(E::bad_attribute, "{} channels and {} filters in {} groups", channels, filters, w.groups);
  Value* moved = image_of(offset, {0, w.offset_groups, taps, 2});
  const auto coordinate = [&](size_t axis) {  // [n, offset groups, taps, rows, columns]
    const auto part = static_cast<int64_t>(axis);
    Value* by = s.op("squeeze", {s.slice(moved, 3, part, part + 1), s.integers({3})});
    return s.op("add", {by, undeformed(s, n, w, axis, axis == 0 ? rows : columns, dtype)});
  };
  Value* image = s.op("mul", {positions_along(s, x, 0), s.number(static_cast<double>(w.offset_groups), DType::i64)});
  Integers groups;
  for (int64_t g = 0; g < w.offset_groups; ++g) groups.push_back(g);
  image = s.op("add", {s.unsqueeze(image, 1), s.integers(groups)});
  image = s.op("unsqueeze", {image, s.integers({2, 3, 4})});
  Value* sampled =  // [n, offset groups, taps, rows, columns, channels of one]
      Sampler(s, rows_of(s, x, w.offset_groups), image, {s, x, 2}, {s, x, 3}).with_zeros(coordinate(0), coordinate(1));
  if (Value* mask = n.input(4))
    sampled = s.op("mul", {sampled, s.unsqueeze(image_of(mask, {0, w.offset_groups, taps}), 5)});
  // [n, groups, places, channels of a group * taps] times [groups, that, filters of a group]
  Value* columns_of =
      s.reshape(s.transpose(sampled, {0, 3, 4, 1, 5, 2}), {0, -1, w.groups, channels / w.groups * taps});
  Value* filter = s.reshape(weights, {w.groups, filters / w.groups, channels / w.groups * taps});
  Value* y = s.op("matmul", {s.transpose(columns_of, {0, 2, 1, 3}), s.transpose(filter, {0, 2, 1})});
  y = image_of(s.transpose(y, {0, 1, 3, 2}), {0, filters});
  if (Value* bias = n.input(3)) y = s.op("add", {y, s.reshape(bias, {filters, 1, 1})});
  return {y};
}

}  // namespace opfuse::onnx
