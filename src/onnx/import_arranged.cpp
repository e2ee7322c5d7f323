// Operators that arrange elements, in those that opfuse has. Of constants; where data decide how many, Compress and
// Unique are routines.
//   CenterCropPad      a slice or a pad of both sides
//   ReverseSequence    gather_elements at len - 1 - t
//   Compress           gather of the places whose condition is true
//   TensorScatter      where(in the update, update[t - start], cache)
//   SpaceToDepth, CRD  reshape, transpose, reshape
//   MaxUnpool          scatter into zeros
//   Col2Im             a transposed convolution whose filter k is 1 at tap k and 0 elsewhere
//   AffineGrid         base points times theta, transposed
//   Unique             what the reader counts
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/fail.hpp"
#include "ir/defined_symbols.hpp"
#include "onnx/attention_parts.hpp"
#include "onnx/defined_sizes.hpp"
#include "onnx/known_shape.hpp"
#include "ops/axes.hpp"

namespace opfuse::onnx {
namespace {

using Results = std::vector<Value*>;
using Integers = std::vector<int64_t>;

Integers constant_integers(const Value* value, const char* what) {
  if (!value->is_constant()) throw fail(E::unsupported_op, "the {} is computed; a constant is needed", what);
  return value->constant->to_i64();
}

const Shape& ranked(const Value* x) {
  if (!x->type.shape.ranked) throw fail(E::unsupported_op, "the rank of an operand is not known");
  return x->type.shape;
}

int64_t product_of(const NodeImport& n, const Integers& values) {
  int64_t product = 1;
  for (int64_t v : values)
    if (v < 0 || __builtin_mul_overflow(product, v, &product) || product > n.limits.index_elements)
      throw fail(E::unsupported_op, "indices of [{}]: at most {} are made (--limit index_elements=N)",
                 fmt::join(values, ", "), n.limits.index_elements);
  return product;
}

/// `v` of one dimension, along `axis` of `rank`.
Value* along(Speller& s, Value* v, size_t axis, size_t rank) {
  Integers axes;
  for (size_t i = 0; i < rank; ++i)
    if (i != axis) axes.push_back(static_cast<int64_t>(i));
  return axes.empty() ? v : s.op("unsqueeze", {v, s.integers(axes)});
}

Value* shaped_like(Speller& s, Value* x, Value* like) { return s.op("expand", {x, s.op("shape", {like})}); }

}  // namespace

/// 0, 1, .. along an axis that may be open.
Value* positions_along(Speller& s, Value* x, size_t axis) {
  const auto size = ranked(x)[axis].constant();
  if (!size || *size > s.limits().index_elements)
    return s.op("range", {s.number(0, DType::i64), s.reshape(s.size_of(x, static_cast<int64_t>(axis)), {}),
                          s.number(1, DType::i64)});
  Integers values(static_cast<size_t>(*size));
  std::iota(values.begin(), values.end(), 0);
  return s.integers(values);
}

Results import_center_crop_pad(NodeImport& n) {
  n.require_inputs(2, 2);
  Speller s(n);
  Value* x = n.required(0);
  const size_t rank = ranked(x).rank();
  const Integers sizes = constant_integers(n.required(1), "shape");
  Integers axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  axes = n.integers("axes").value_or(axes);
  if (axes.size() != sizes.size()) throw fail(E::bad_attribute, "{} sizes for {} axes", sizes.size(), axes.size());
  Integers pads(2 * rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = normalize_axis(axes[i], rank);
    const int64_t have = known_size(x, axis), want = sizes[i], less = want < have ? (have - want) / 2 : 0;
    if (want < 0) throw fail(E::bad_dimension, "a size of {}", want);
    if (want < have) x = s.slice(x, static_cast<int64_t>(axis), less, less + want);
    if (want > have) pads[axis] = (want - have) / 2, pads[rank + axis] = want - have - pads[axis];
  }
  if (std::any_of(pads.begin(), pads.end(), [](int64_t pad) { return pad != 0; }))
    x = s.op("pad", {x, s.integers(pads), s.number(0, x->type.dtype)});
  return {x == n.required(0) ? s.op("identity", {x}) : x};
}

Results import_compress(NodeImport& n) {
  n.require_inputs(2, 2);
  Speller s(n);
  Value* x = n.required(0);
  if (!n.required(1)->is_constant()) {
    AttrMap attrs{{"axis", n.has("axis") ? Integers{n.integer("axis", 0)} : Integers{}}};
    if (const Node* same = same_node(n, "compress", attrs)) return {same->output()};
    attrs.emplace_back(kDefines, defines_of(n));
    return n.emit("compress", attrs, n.inputs);
  }
  const Integers chosen = constant_integers(n.required(1), "condition");
  Integers places;
  for (size_t i = 0; i < chosen.size(); ++i)
    if (chosen[i] != 0) places.push_back(static_cast<int64_t>(i));
  const bool flat = !n.has("axis");
  const int64_t axis = n.integer("axis", 0);
  return {s.op("gather", {flat ? s.reshape(x, {-1}) : x, s.integers(places)}, {{"axis", axis}})};
}

Results import_reverse_sequence(NodeImport& n) {
  n.require_inputs(2, 2);
  Speller s(n);
  Value* x = n.required(0);
  const size_t rank = ranked(x).rank();
  const size_t batch = normalize_axis(n.integer("batch_axis", 1), rank);
  const size_t time = normalize_axis(n.integer("time_axis", 0), rank);
  if (batch == time) throw fail(E::bad_attribute, "batch_axis and time_axis are both {}", time);
  Value* t = along(s, positions_along(s, x, time), time, rank);
  Value* length = along(s, s.cast(n.required(1), DType::i64), batch, rank);
  Value* turned = s.op("sub", {s.op("sub", {length, s.number(1, DType::i64)}), t});
  Value* at = s.op("where", {s.op("less", {t, length}), turned, t});
  return {s.op("gather_elements", {x, shaped_like(s, at, x)}, {{"axis", static_cast<int64_t>(time)}})};
}

/// `at`: rows of the cache counted from where the update starts.
static Value* overwritten(Speller& s, Value* cache, Value* update, Value* at, size_t axis) {
  Value *zero = s.number(0, DType::i64), *size = s.size_of(update, static_cast<int64_t>(axis));
  Value* inside = s.op("and", {s.op("greater_or_equal", {at, zero}), s.op("less", {at, size})});
  if (ranked(update)[axis].constant() == 1) return s.op("where", {inside, update, cache});
  Value* place = shaped_like(s, s.op("where", {inside, at, zero}), cache);
  Value* fresh = s.op("gather_elements", {update, place}, {{"axis", static_cast<int64_t>(axis)}});
  return s.op("where", {inside, fresh, cache});
}

static Value* rows_from(Speller& s, Value* cache, Value* start, size_t axis) {
  const size_t rank = ranked(cache).rank();
  Value* at = along(s, positions_along(s, cache, axis), axis, rank);
  return start ? s.op("sub", {at, along(s, s.cast(start, DType::i64), 0, rank)}) : at;
}

Value* written_at(Speller& s, Value* cache, Value* update, Value* start, size_t axis) {
  return overwritten(s, cache, update, rows_from(s, cache, start, axis), axis);
}

Results import_tensor_scatter(NodeImport& n) {
  n.require_inputs(2, 3);
  Speller s(n);
  Value *cache = n.required(0), *update = n.required(1);
  const std::string mode = n.text("mode", "linear");
  if (mode != "linear" && mode != "circular") throw fail(E::bad_attribute, "mode is \"{}\"", mode);
  const size_t rank = ranked(cache).rank(), axis = normalize_axis(n.integer("axis", -2), rank);
  if (axis == 0 || ranked(update).rank() != rank)
    throw fail(E::bad_attribute, "an update of {} along axis {} of {}", update->type.text(), axis, cache->type.text());
  Value* at = rows_from(s, cache, n.input(2), axis);
  if (mode == "circular") at = s.op("mod", {at, s.size_of(cache, static_cast<int64_t>(axis))});
  return {overwritten(s, cache, update, at, axis)};
}

Results import_space_to_depth_crd(NodeImport& n) {
  n.require_inputs(1, 1);
  Speller s(n);
  Value* x = n.required(0);
  const int64_t b = n.integer("blocksize", 0);
  if (ranked(x).rank() != 4) throw fail(E::rank_mismatch, "the operand is {}", x->type.text());
  const int64_t channels = known_size(x, 1), height = known_size(x, 2), width = known_size(x, 3);
  if (b <= 0 || height % b != 0 || width % b != 0) throw fail(E::bad_attribute, "blocksize is {}", b);
  Value* blocks = s.reshape(x, {0, channels, height / b, b, width / b, b});
  return {s.reshape(s.transpose(blocks, {0, 1, 3, 5, 2, 4}), {0, channels * b * b, height / b, width / b})};
}

Results import_max_unpool(NodeImport& n) {
  n.require_inputs(2, 3);
  Speller s(n);
  Value* x = n.required(0);
  const size_t rank = ranked(x).rank();
  const Integers kernel = n.integers("kernel_shape").value_or(Integers{});
  const size_t axes = kernel.size();
  if (axes == 0 || rank != axes + 2) throw fail(E::bad_attribute, "kernel_shape has {} values", axes);
  const Integers pads = n.integers("pads").value_or(Integers(2 * axes, 0));
  const Integers strides = n.integers("strides").value_or(Integers(axes, 1));
  if (pads.size() != 2 * axes || strides.size() != axes)
    throw fail(E::bad_attribute, "pads or strides of {} axes", axes);
  Integers shape{known_size(x, 0), known_size(x, 1)}, missing(2 * rank, 0);
  for (size_t i = 0; i < axes; ++i)
    shape.push_back((known_size(x, i + 2) - 1) * strides[i] - pads[i] - pads[axes + i] + kernel[i]);
  Value* zeros = s.op("constant_of_shape", {s.integers({product_of(n, shape)})}, {{"dtype", x->type.dtype}});
  Value* places = s.reshape(n.required(1), {-1});
  Value* y = s.op("scatter_elements", {zeros, places, s.reshape(x, {-1})}, {{"axis", int64_t{0}}});
  y = s.reshape(y, shape);
  if (!n.input(2)) return {y};
  const Integers wanted = constant_integers(n.input(2), "output shape");
  if (wanted.size() != rank) throw fail(E::bad_attribute, "output_shape has {} values", wanted.size());
  for (size_t i = 0; i < rank; ++i) missing[rank + i] = wanted[i] - shape[i];
  return {s.op("pad", {y, s.integers(missing), s.number(0, x->type.dtype)})};
}

Results import_col2im(NodeImport& n) {
  n.require_inputs(3, 3);
  Speller s(n);
  Value* x = n.required(0);
  const Integers image = constant_integers(n.required(1), "image shape");
  const Integers block = constant_integers(n.required(2), "block shape");
  const size_t axes = image.size();
  if (axes == 0 || block.size() != axes || ranked(x).rank() != 3)
    throw fail(E::bad_attribute, "blocks of {} axes for images of {}", block.size(), axes);
  const Integers dilations = n.integers("dilations").value_or(Integers(axes, 1));
  const Integers strides = n.integers("strides").value_or(Integers(axes, 1));
  const Integers pads = n.integers("pads").value_or(Integers(2 * axes, 0));
  if (dilations.size() != axes || strides.size() != axes || pads.size() != 2 * axes)
    throw fail(E::bad_attribute, "dilations, strides or pads do not belong to {} axes", axes);
  const int64_t taps = product_of(n, block), planes = known_size(x, 1);
  if (taps == 0 || planes % taps != 0) throw fail(E::shape_mismatch, "{} planes of blocks of {}", planes, taps);
  Integers places{0, planes}, rest, filter{planes, 1};
  for (size_t i = 0; i < axes; ++i) {
    const int64_t reach = image[i] + pads[i] + pads[axes + i] - dilations[i] * (block[i] - 1) - 1;
    if (strides[i] <= 0 || reach < 0) throw fail(E::bad_attribute, "blocks do not fit into the image");
    places.push_back(reach / strides[i] + 1);
    rest.push_back(reach % strides[i]);
    filter.push_back(block[i]);
  }
  Tensor weights(x->type.dtype, filter);
  product_of(n, filter);
  for (int64_t plane = 0; plane < planes; ++plane) weights.set_real(plane * taps + plane % taps, 1);
  // Of an output padding a transposed convolution's own rule is: less than the stride or the dilation, as here.
  const AttrMap attrs{{"dilations", dilations}, {"group", planes / taps}, {"kernel_shape", block},
                      {"output_padding", rest}, {"pads", pads},           {"strides", strides}};
  return {s.op("conv_transpose", {s.reshape(x, places), n.constant(std::move(weights))}, attrs)};
}

Results import_affine_grid(NodeImport& n) {
  n.require_inputs(2, 2);
  Speller s(n);
  Value* theta = n.required(0);
  const bool corners = n.integer("align_corners", 0) != 0;
  const Integers size = constant_integers(n.required(1), "size");
  const size_t axes = size.size() < 2 ? 0 : size.size() - 2;
  if (axes != 2 && axes != 3) throw fail(E::bad_attribute, "size has {} values; 4 or 5 are expected", size.size());
  const Integers image(size.begin() + 2, size.end());
  const int64_t points = product_of(n, image), columns = static_cast<int64_t>(axes) + 1;
  Tensor base(theta->type.dtype, {points, columns});
  for (int64_t p = 0; p < points; ++p) {
    int64_t rest = p;
    for (size_t a = axes; a-- > 0; rest /= image[a]) {
      const auto at = static_cast<double>(rest % image[a]), extent = static_cast<double>(image[a]);
      const double edge = extent > 1 ? 2 * at / (extent - 1) - 1 : 0;
      base.set_real(p * columns + static_cast<int64_t>(axes - 1 - a), corners ? edge : (2 * at + 1) / extent - 1);
    }
    base.set_real(p * columns + columns - 1, 1);
  }
  Value* grid = s.op("matmul", {n.constant(std::move(base)), s.transpose(theta, {0, 2, 1})});
  Integers shape{0};
  shape.insert(shape.end(), image.begin(), image.end());
  shape.push_back(static_cast<int64_t>(axes));
  return {s.reshape(grid, shape)};
}

namespace {

/// Slices of a constant along an axis, compared element by element.
struct Slices {
  const Tensor& x;
  size_t axis;
  int64_t outer = 1, inner = 1;

  Slices(const Tensor& tensor, size_t along) : x(tensor), axis(along) {
    for (size_t d = 0; d < axis; ++d) outer *= x.dim(d);
    for (size_t d = axis + 1; d < x.rank(); ++d) inner *= x.dim(d);
  }
  int64_t place(int64_t slice, int64_t k) const { return (k / inner * x.dim(axis) + slice) * inner + k % inner; }
  int compared(int64_t a, int64_t b) const {
    for (int64_t k = 0; k < outer * inner; ++k) {
      const bool reals = is_float(x.dtype());
      const int64_t i = place(a, k), j = place(b, k);
      if (reals ? x.real(i) < x.real(j) : x.integer(i) < x.integer(j)) return -1;
      if (reals ? x.real(j) < x.real(i) : x.integer(j) < x.integer(i)) return 1;
    }
    return 0;
  }
};

}  // namespace

Results import_unique(NodeImport& n) {
  n.require_inputs(1, 1);
  if (!n.required(0)->is_constant()) {
    const AttrMap attrs{{"axis", n.has("axis") ? Integers{n.integer("axis", 0)} : Integers{}},
                        {"sorted", n.integer("sorted", 1) != 0},
                        {kDefines, defines_of(n)}};
    return n.emit("unique", attrs, n.inputs, std::max<size_t>(1, n.output_count()));
  }
  const bool sorted = n.integer("sorted", 1) != 0, flat = !n.has("axis");
  const Tensor& given = *n.required(0)->constant;
  const size_t axis = flat ? 0 : normalize_axis(n.integer("axis", 0), given.rank());
  const Tensor x = flat ? given.reshaped({given.elements()}) : given;
  const Slices slices(x, axis);
  Integers order(static_cast<size_t>(x.dim(axis)));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return slices.compared(a, b) < 0; });
  std::vector<std::pair<int64_t, Integers>> groups;  // first occurrence, all of them
  for (int64_t i : order) {
    if (groups.empty() || slices.compared(groups.back().first, i) != 0) groups.push_back({i, {}});
    groups.back().second.push_back(i);
  }
  if (!sorted) std::sort(groups.begin(), groups.end());
  Integers first, counts, inverse(order.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    first.push_back(groups[g].first);
    counts.push_back(static_cast<int64_t>(groups[g].second.size()));
    for (int64_t i : groups[g].second) inverse[static_cast<size_t>(i)] = static_cast<int64_t>(g);
  }
  Speller s(n);
  Value* y = s.op("gather", {n.constant(x), s.integers(first)}, {{"axis", static_cast<int64_t>(axis)}});
  Results results{y, s.integers(first), s.integers(inverse), s.integers(counts)};
  results.resize(std::max<size_t>(1, n.output_count()));
  return results;
}

}  // namespace opfuse::onnx
