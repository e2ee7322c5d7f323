// Pooling references: a plain walk over the taps of every output, planes in parallel.
#include "ops/pool.hpp"

#include <cmath>
#include <limits>

#include "base/fail.hpp"
#include "base/parallel.hpp"
#include "ops/checks.hpp"
#include "ops/window_walk.hpp"

namespace opfuse {
namespace {

Shape pooled(const Shape& x, const std::vector<WindowAxis>& axes) {
  std::vector<Dim> y = {x[0], x[1]};
  for (const WindowAxis& a : axes) y.push_back(a.out);
  return Shape(std::move(y));
}

/// Windows of the operand. One that sees padding alone has no largest element and no mean.
std::vector<WindowAxis> windows_on_data(const auto& attrs, const Shape& x) {
  std::vector<WindowAxis> axes = attrs.window(x);
  for (const WindowAxis& a : axes) {
    const int64_t reach = (a.kernel - 1) * a.dilation + 1;
    for (const Dim& pad : {a.pad_begin, a.pad_end})
      if (pad.is_constant() && pad.value() >= reach)
        throw fail(E::bad_attribute,
                   "{} elements of padding, and a window reaches over {}: one would see padding alone", pad.value(),
                   reach)
            .hint("ONNX Runtime refuses it too; pad by a Pad in front of the pool, which says with what");
  }
  return axes;
}

/// One useful tap is one operation, and each output costs `per_output` more.
Cost pool_cost(const TensorType& x, const TensorType& y, const std::vector<WindowAxis>& axes, int64_t per_tap,
               int64_t per_output) {
  Dim taps = x.shape[0] * x.shape[1];
  for (const WindowAxis& a : axes) taps = taps * useful_taps(a);
  return {.flops = taps * Dim(per_tap) + y.shape.elements() * Dim(per_output)};
}

/// Calls body(plane, x of the plane, first output of the plane).
template <class F>
void for_each_plane(const Tensor& x, const WindowWalk& walk, F&& body) {
  const Reals values(x);
  const int64_t planes = x.dim(0) * x.dim(1);
  parallel_for(
      planes, [&](int64_t p) { body(p, values.data() + p * walk.inputs(), p * walk.outputs()); },
      planes * walk.outputs() < 4096 ? 1 : 0);
}

std::vector<int64_t> pooled_sizes(const Tensor& x, const WindowWalk& walk) {
  std::vector<int64_t> sizes = {x.dim(0), x.dim(1)};
  for (const WindowSizes& a : walk.axes()) sizes.push_back(a.out);
  return sizes;
}

}  // namespace

OpSpec MaxPool::spec() {
  return {.name = "max_pool",
          .inputs = {{"x"}},
          .outputs = {{"y"}, {.name = "indices", .optional = true}},
          .kind = OpKind::window,
          .doc = "Largest element of each window."};
}

std::vector<TensorType> MaxPool::infer(const Attrs& a, const Inference& in) {
  require_numeric(in, 0);
  if (a.storage_order != 0 && a.storage_order != 1)
    throw fail(E::bad_attribute, "storage_order is {}; 0 or 1 is expected", a.storage_order);
  std::vector<TensorType> types = unranked(in, in.dtype(0));
  if (!has_unranked(in)) types[0].shape = pooled(in.shape(0), windows_on_data(a, in.shape(0)));
  if (types.size() > 1) types[1] = {DType::i64, types[0].shape};
  return types;
}

std::vector<Tensor> MaxPool::reference(const Attrs& a, Tensors in, Precision) {
  const WindowWalk walk(concrete(a.window(Shape::of(in[0]->sizes()))));
  Tensor y(DType::f64, pooled_sizes(*in[0], walk)), indices(DType::i64, y.sizes());
  double* out = reals(y);
  auto* index = static_cast<int64_t*>(indices.mutable_data());
  for_each_plane(*in[0], walk, [&](int64_t plane, const double* x, int64_t first) {
    for (int64_t o = 0; o < walk.outputs(); ++o) {
      double best = -std::numeric_limits<double>::infinity();
      int64_t at = -1;
      walk.for_each_tap(o, [&](int64_t offset) {
        const double v = x[offset];
        if (at < 0 || v > best || (std::isnan(v) && !std::isnan(best))) best = v, at = offset;
      });
      out[first + o] = best;
      index[first + o] = at < 0 ? -1 : plane * walk.inputs() + (a.storage_order == 1 ? walk.column_major(at) : at);
    }
  });
  return {rounded(std::move(y), in[0]->dtype()), indices};
}

Cost MaxPool::cost(const Attrs& a, std::span<const TensorType> in, std::span<const TensorType> out) {
  if (!in[0].shape.ranked) return {};
  return pool_cost(in[0], out[0], a.window(in[0].shape), 1, 0);
}

OpSpec AveragePool::spec() {
  return {.name = "average_pool",
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .kind = OpKind::window,
          .doc = "Mean of each window."};
}

std::vector<TensorType> AveragePool::infer(const Attrs& a, const Inference& in) {
  require_float(in, 0);
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  return {{in.dtype(0), pooled(in.shape(0), windows_on_data(a, in.shape(0)))}};
}

std::vector<Tensor> AveragePool::reference(const Attrs& a, Tensors in, Precision) {
  const WindowWalk walk(concrete(a.window(Shape::of(in[0]->sizes()))));
  Tensor y(DType::f64, pooled_sizes(*in[0], walk));
  double* out = reals(y);
  for_each_plane(*in[0], walk, [&](int64_t, const double* x, int64_t first) {
    for (int64_t o = 0; o < walk.outputs(); ++o) {
      double sum = 0;
      int64_t taps = 0;
      walk.for_each_tap(o, [&](int64_t offset) { sum += x[offset], ++taps; });
      out[first + o] = sum / static_cast<double>(a.count_include_pad ? walk.padded_taps(o) : taps);
    }
  });
  return {rounded(std::move(y), in[0]->dtype())};
}

Cost AveragePool::cost(const Attrs& a, std::span<const TensorType> in, std::span<const TensorType> out) {
  if (!in[0].shape.ranked) return {};
  return pool_cost(in[0], out[0], a.window(in[0].shape), 1, 1);
}

OpSpec LpPool::spec() {
  return {.name = "lp_pool",
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .kind = OpKind::window,
          .doc = "p-norm of each window."};
}

std::vector<TensorType> LpPool::infer(const Attrs& a, const Inference& in) {
  require_float(in, 0);
  if (a.p < 1) throw fail(E::bad_attribute, "p is {}; at least 1 is expected", a.p);
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  return {{in.dtype(0), pooled(in.shape(0), windows_on_data(a, in.shape(0)))}};
}

std::vector<Tensor> LpPool::reference(const Attrs& a, Tensors in, Precision) {
  const WindowWalk walk(concrete(a.window(Shape::of(in[0]->sizes()))));
  Tensor y(DType::f64, pooled_sizes(*in[0], walk));
  double* out = reals(y);
  const auto p = static_cast<double>(a.p);
  for_each_plane(*in[0], walk, [&](int64_t, const double* x, int64_t first) {
    for (int64_t o = 0; o < walk.outputs(); ++o) {
      double sum = 0;
      walk.for_each_tap(o, [&](int64_t offset) { sum += std::pow(std::fabs(x[offset]), p); });
      out[first + o] = std::pow(sum, 1 / p);
    }
  });
  return {rounded(std::move(y), in[0]->dtype())};
}

Cost LpPool::cost(const Attrs& a, std::span<const TensorType> in, std::span<const TensorType> out) {
  if (!in[0].shape.ranked) return {};
  return pool_cost(in[0], out[0], a.window(in[0].shape), 2, 1);
}

}  // namespace opfuse
