// Resize and Upsample. A filter is the product of those of its axes, so a node that reads more elements for a result
// than one kernel does (antialiasing widens filters where an axis shrinks) becomes one Resize for each axis, and an
// axis whose own filter is wider still a sum over gathered windows:
//   y[.., o, ..] = sum_k weight[o, k] x[.., position[o, k], ..]
// Where axes depend on each other (kept aspects, regions), and on integers, which are rounded once, all of them are
// sums.
#include <algorithm>
#include <cmath>

#include "base/fail.hpp"
#include "onnx/import_resize_open.hpp"
#include "onnx/import_spelled.hpp"
#include "ops/attr_fields.hpp"
#include "ops/registry.hpp"
#include "ops/resize_taps.hpp"

namespace opfuse::onnx {
namespace {

using Results = std::vector<Value*>;

/// Elements that a result may be made of in one kernel.
double most_reads(const NodeImport& n) { return static_cast<double>(n.limits.resize_reads); }

/// A constant operand without elements stands for an absent one (opset 11 wrote "" only from 13 on).
void drop_empty(NodeImport& n) {
  for (Value*& value : n.inputs)
    if (value && value->is_constant() && value->constant->elements() == 0) value = nullptr;
}

/// Coordinates of before opset 11, with the node's own mode.
AttrMap asymmetric(NodeImport& n) {
  AttrMap attrs = n.declared_attributes(*op_named("resize"));
  attrs.emplace_back("coordinate_transformation_mode", std::string("asymmetric"));
  return attrs;
}

Value* resized_from(NodeImport& n, AttrMap attrs, const char* nearest_mode, Value* x, Value* scales) {
  attrs.emplace_back("nearest_mode", std::string(nearest_mode));
  return n.emit("resize", attrs, {x, nullptr, scales}, 1)[0];
}

/// An axis that may be resized by itself.
struct ResizedAxis {
  int64_t axis = 0;
  int64_t place = 0;  ///< of its scale or size in the operand
  double taps = 1;
};

double taps_of(const Resize::Attrs& a, double scale) {
  const double radius = a.mode == ResizeMode::cubic ? 2 : 1;
  return 2 * std::ceil(a.antialias ? radius / std::min(scale, 1.0) : radius);
}

/// Those that change; none where axes depend on each other, or are not known.
std::vector<ResizedAxis> axes_alone(NodeImport& n, const Resize::Attrs& a) {
  const Value *x = n.input(0), *given = n.input(2) ? n.input(2) : n.input(3);
  if (!x || !is_float(x->type.dtype) || !x->type.shape.ranked || !given || !given->is_constant()) return {};
  if (a.coordinate_transformation_mode == CoordinateMode::tf_crop_and_resize ||
      a.keep_aspect_ratio_policy != AspectPolicy::stretch)
    return {};
  const auto rank = static_cast<int64_t>(x->type.shape.rank());
  const int64_t count = given->constant->elements();
  if (count != (a.axes.empty() ? rank : static_cast<int64_t>(a.axes.size()))) return {};
  std::vector<ResizedAxis> axes;
  for (int64_t place = 0; place < count; ++place) {
    const int64_t listed = a.axes.empty() ? place : a.axes[static_cast<size_t>(place)];
    const int64_t axis = listed < 0 ? listed + rank : listed;
    if (axis < 0 || axis >= rank) return {};
    const Dim& in = x->type.shape[static_cast<size_t>(axis)];
    if (!n.input(2) && !in.is_constant()) {
      if (a.antialias) return {};
      axes.push_back({axis, place, taps_of(a, 1)});
      continue;
    }
    const double scale = n.input(2)
                             ? given->constant->real(place)
                             : static_cast<double>(given->constant->integer(place)) / static_cast<double>(in.value());
    if (!(scale > 0)) return {};
    if (scale != 1) axes.push_back({axis, place, taps_of(a, scale)});
  }
  return axes;
}

DType computed_in(DType dtype) { return is_float(dtype) && dtype != DType::f64 ? DType::f32 : DType::f64; }

/// The sum above; positions and weights are tables.
Value* windows_summed(NodeImport& n, Value* x, size_t axis, const ResizeTaps& taps, int64_t out) {
  Speller s(n);
  std::vector<int64_t> sizes{out, taps.count};
  Value* at = n.constant(Tensor::from_i64(taps.positions).reshaped(sizes));
  sizes.resize(1 + x->type.shape.rank() - axis, 1);
  Value* weights = n.constant(Tensor::of<double>(x->type.dtype, sizes, taps.weights));
  const auto along = static_cast<int64_t>(axis);
  Value* windows = s.op("gather", {x, at}, {{"axis", along}});
  return s.op("reduce_sum", {s.op("mul", {windows, weights}), s.integers({along + 1})}, {{"keepdims", false}});
}

/// y where the source position is inside of the axis, else the extrapolation value.
Value* filled_outside(NodeImport& n, const Resize::Attrs& a, Value* y, size_t axis, const ResizeAxis& r) {
  std::vector<double> inside;
  for (int64_t o = 0; o < r.out; ++o) {
    const double x = resize_coordinate(a.coordinate_transformation_mode, r, o);
    inside.push_back(x >= 0 && x <= static_cast<double>(r.in - 1) ? 1 : 0);
  }
  std::vector<int64_t> sizes{r.out};
  sizes.resize(y->type.shape.rank() - axis, 1);
  Speller s(n);
  return s.op("where", {n.constant(Tensor::of<double>(DType::boolean, sizes, inside)), y,
                        s.number(a.extrapolation_value, y->type.dtype)});
}

/// All axes as sums where extents are known and a kernel would read too much; null where it would not.
Value* all_summed(NodeImport& n, const Resize::Attrs& a) {
  Value* x = n.required(0);
  const auto constant = [&](size_t i) { return n.input(i) ? &*n.input(i)->constant : nullptr; };
  for (size_t i = 1; i < 4; ++i)
    if (n.input(i) && !n.input(i)->is_constant()) return nullptr;
  if (!x->type.shape.ranked || !x->type.shape.is_static() || (!n.input(2) && !n.input(3))) return nullptr;
  const std::vector<ResizeAxis> axes = resize_axes(a, x->type.shape.sizes(), constant(1), constant(2), constant(3));
  const auto changes = [&](const ResizeAxis& r) { return !r.is_identity(a.coordinate_transformation_mode); };
  double reads = 1;
  for (const ResizeAxis& r : axes)
    if (changes(r)) reads *= taps_of(a, r.scale);
  if (reads <= most_reads(n)) return nullptr;
  Speller s(n);
  Value* y = s.cast(x, computed_in(x->type.dtype));
  for (size_t i = 0; i < axes.size(); ++i)
    if (changes(axes[i])) y = windows_summed(n, y, i, resize_taps(a, axes[i]), axes[i].out);
  const bool crops = a.coordinate_transformation_mode == CoordinateMode::tf_crop_and_resize;
  for (size_t i = 0; crops && i < axes.size(); ++i)
    if (changes(axes[i])) y = filled_outside(n, a, y, i, axes[i]);
  return s.cast(y, x->type.dtype);
}

Tensor element_of(const Tensor& t, int64_t i) { return Tensor::of(t.dtype(), {1}, std::vector<double>{t.real(i)}); }

Value* resized_along(NodeImport& n, AttrMap attrs, Value* x, const ResizedAxis& at) {
  std::erase_if(attrs, [](const auto& attr) { return attr.first == "axes"; });
  attrs.emplace_back("axes", std::vector<int64_t>{at.axis});
  Value* const scale = n.input(2) ? n.constant(element_of(*n.input(2)->constant, at.place)) : nullptr;
  Value* const size = n.input(2) ? nullptr : n.integers_constant({n.input(3)->constant->integer(at.place)});
  const auto axis = static_cast<size_t>(at.axis);
  const Dim& extent = x->type.shape[axis];
  if (at.taps <= most_reads(n) || !extent.is_constant())
    return n.emit("resize", attrs, {x, nullptr, scale, size}, 1)[0];
  std::vector<int64_t> sizes(x->type.shape.rank(), 1);
  sizes[axis] = extent.value();
  const auto parsed = attrs_from_map<Resize::Attrs>(attrs, "resize");
  const auto constant = [](const Value* v) { return v ? &*v->constant : nullptr; };
  const ResizeAxis alone = resize_axes(parsed, sizes, nullptr, constant(scale), constant(size))[axis];
  Speller s(n);
  Value* y = windows_summed(n, s.cast(x, computed_in(x->type.dtype)), axis, resize_taps(parsed, alone), alone.out);
  return s.cast(y, x->type.dtype);
}

/// x, scales. No coordinate modes yet; nearest rounds down, and up along an axis that shrinks.
Results resize_10(NodeImport& n) {
  n.require_inputs(2, 2);
  Value *const x = n.required(0), *const scales = n.required(1);
  const AttrMap attrs = asymmetric(n);
  std::vector<double> shrinking, growing;
  for (int64_t i = 0; scales->is_constant() && i < scales->constant->elements(); ++i) {
    shrinking.push_back(std::min(scales->constant->real(i), 1.0));
    growing.push_back(std::max(scales->constant->real(i), 1.0));
  }
  const auto changes = [](double scale) { return scale != 1; };
  const bool shrinks = std::any_of(shrinking.begin(), shrinking.end(), changes);
  const bool both = shrinks && std::any_of(growing.begin(), growing.end(), changes);
  if (!both || attrs_from_map<Resize::Attrs>(attrs, "resize").mode != ResizeMode::nearest)
    return {resized_from(n, attrs, shrinks ? "ceil" : "floor", x, scales)};
  const auto constant = [&](const std::vector<double>& values) {
    return n.constant(Tensor::of<double>(DType::f32, {static_cast<int64_t>(values.size())}, values));
  };
  Value* const smaller = resized_from(n, attrs, "ceil", x, constant(shrinking));
  return {resized_from(n, attrs, "floor", smaller, constant(growing))};
}

}  // namespace

Results import_resize(NodeImport& n) {
  drop_empty(n);
  if (n.opset < 11) return resize_10(n);
  const AttrMap attrs = n.declared_attributes(*op_named("resize"));
  const auto parsed = attrs_from_map<Resize::Attrs>(attrs, "resize");
  const bool filters = parsed.mode != ResizeMode::nearest;
  const std::vector<ResizedAxis> axes = filters ? axes_alone(n, parsed) : std::vector<ResizedAxis>{};
  double reads = axes.empty() ? 0 : 1;
  for (const ResizedAxis& axis : axes) reads *= axis.taps;
  if (reads > most_reads(n)) {
    Value* value = n.required(0);
    for (const ResizedAxis& axis : axes) value = resized_along(n, attrs, value, axis);
    return {value};
  }
  if (Value* product = resized_openly(n, parsed)) return {product};
  if (filters && axes.empty())
    if (Value* sums = all_summed(n, parsed)) return {sums};
  return n.emit("resize", attrs, n.inputs, std::max<size_t>(1, n.output_count()));
}

Results import_upsample(NodeImport& n) {
  Value* const x = n.required(0);
  return {resized_from(n, asymmetric(n), "floor", x, n.opset >= 9 ? n.required(1) : nullptr)};
}

}  // namespace opfuse::onnx
