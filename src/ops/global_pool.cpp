// Global pooling: one reduction per (n, c) plane.
#include "ops/global_pool.hpp"

#include <cmath>
#include <limits>

#include "base/fail.hpp"
#include "ops/checks.hpp"

namespace opfuse {
namespace {

std::vector<TensorType> infer_global(const Inference& in) {
  require_float(in, 0);
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  require_min_rank(in, 0, 3);
  Shape y = in.shape(0);
  for (size_t i = 2; i < y.rank(); ++i) y[i] = 1;
  return {{in.dtype(0), y}};
}

/// reduce(first element, count) -> value of one plane.
template <class F>
std::vector<Tensor> reduce_planes(const Tensor& x, F&& reduce) {
  std::vector<int64_t> sizes(x.rank(), 1);
  sizes[0] = x.dim(0);
  sizes[1] = x.dim(1);
  const int64_t plane = product(x.sizes(), 2, x.rank());
  const Reals values(x);
  Tensor y(DType::f64, sizes);
  for (int64_t i = 0; i < y.elements(); ++i) reals(y)[i] = reduce(values.data() + i * plane, plane);
  return {rounded(std::move(y), x.dtype())};
}

Cost global_cost(std::span<const TensorType> in, std::span<const TensorType> out, int64_t per_input,
                 int64_t per_output) {
  if (!in[0].shape.ranked) return {};
  return {.flops = in[0].shape.elements() * Dim(per_input) + out[0].shape.elements() * Dim(per_output)};
}

OpSpec global_spec(const char* name, const char* doc) {
  return {.name = name, .inputs = {{"x"}}, .outputs = {{"y"}}, .kind = OpKind::reduction, .doc = doc};
}

}  // namespace

OpSpec GlobalAveragePool::spec() { return global_spec("global_average_pool", "Mean over all spatial axes."); }
std::vector<TensorType> GlobalAveragePool::infer(const Attrs&, const Inference& in) { return infer_global(in); }
std::vector<Tensor> GlobalAveragePool::reference(const Attrs&, Tensors in, Precision) {
  return reduce_planes(*in[0], [](const double* x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[i];
    return sum / static_cast<double>(n);
  });
}
Cost GlobalAveragePool::cost(const Attrs&, std::span<const TensorType> in, std::span<const TensorType> out) {
  return global_cost(in, out, 1, 1);
}

OpSpec GlobalMaxPool::spec() { return global_spec("global_max_pool", "Largest element over all spatial axes."); }
std::vector<TensorType> GlobalMaxPool::infer(const Attrs&, const Inference& in) { return infer_global(in); }
std::vector<Tensor> GlobalMaxPool::reference(const Attrs&, Tensors in, Precision) {
  return reduce_planes(*in[0], [](const double* x, int64_t n) {
    double best = -std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < n; ++i) best = maximum(best, x[i]);
    return best;
  });
}
Cost GlobalMaxPool::cost(const Attrs&, std::span<const TensorType> in, std::span<const TensorType> out) {
  return global_cost(in, out, 1, 0);
}

OpSpec GlobalLpPool::spec() { return global_spec("global_lp_pool", "p-norm over all spatial axes."); }
std::vector<TensorType> GlobalLpPool::infer(const Attrs& a, const Inference& in) {
  if (a.p < 1) throw fail(E::bad_attribute, "p is {}; at least 1 is expected", a.p);
  return infer_global(in);
}
std::vector<Tensor> GlobalLpPool::reference(const Attrs& a, Tensors in, Precision) {
  const auto p = static_cast<double>(a.p);
  return reduce_planes(*in[0], [p](const double* x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::pow(std::fabs(x[i]), p);
    return std::pow(sum, 1 / p);
  });
}
Cost GlobalLpPool::cost(const Attrs&, std::span<const TensorType> in, std::span<const TensorType> out) {
  return global_cost(in, out, 2, 1);
}

}  // namespace opfuse
