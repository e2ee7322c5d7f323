// Softmax family: each row of `length` elements, `inner` apart, on its own.
#include "ops/softmax.hpp"

#include <cmath>
#include <limits>

#include "base/parallel.hpp"
#include "ops/checks.hpp"

namespace opfuse {
namespace {

std::vector<TensorType> infer_same(const SoftmaxAttrs& a, const Inference& in) {
  require_float(in, 0);
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  const size_t rank = in.shape(0).rank();
  if (!(a.flatten && a.axis == static_cast<int64_t>(rank))) normalize_axis(a.axis, rank);
  return {{in.dtype(0), in.shape(0)}};
}

/// row(x, y, length, step) for every row.
template <class F>
std::vector<Tensor> for_each_row(const SoftmaxAttrs& a, const Tensor& t, F&& row) {
  const std::vector<int64_t>& sizes = t.sizes();
  const bool past_end = a.flatten && a.axis == static_cast<int64_t>(sizes.size());
  const size_t axis = past_end ? sizes.size() : normalize_axis(a.axis, sizes.size());
  const int64_t outer = product(sizes, 0, axis);
  const int64_t length = a.flatten ? product(sizes, axis, sizes.size()) : sizes[axis];
  const int64_t inner = a.flatten ? 1 : product(sizes, axis + 1, sizes.size());
  const Reals x(t);
  Tensor y(DType::f64, sizes);
  double* out = reals(y);
  parallel_for(
      outer,
      [&](int64_t o) {
        for (int64_t i = 0; i < inner; ++i)
          row(x.data() + o * length * inner + i, out + o * length * inner + i, length, inner);
      },
      y.elements() < 8192 ? 1 : 0);
  return {rounded(std::move(y), t.dtype())};
}

double row_maximum(const double* x, int64_t n, int64_t step) {
  double best = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < n; ++i) best = maximum(best, x[i * step]);
  return best;
}

OpSpec softmax_spec(const char* name, int flops, const char* doc) {
  return {.name = name,
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .kind = OpKind::reduction,
          .flops_per_element = flops,
          .doc = doc};
}

}  // namespace

OpSpec Softmax::spec() { return softmax_spec("softmax", 5, "Exponentials divided by their sum along an axis."); }
std::vector<TensorType> Softmax::infer(const Attrs& a, const Inference& in) { return infer_same(a, in); }
std::vector<Tensor> Softmax::reference(const Attrs& a, Tensors in, Precision) {
  return for_each_row(a, *in[0], [](const double* x, double* y, int64_t n, int64_t step) {
    const double top = row_maximum(x, n, step);
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += y[i * step] = std::exp(x[i * step] - top);
    for (int64_t i = 0; i < n; ++i) y[i * step] /= sum;
  });
}

OpSpec LogSoftmax::spec() { return softmax_spec("log_softmax", 5, "Logarithm of softmax along an axis."); }
std::vector<TensorType> LogSoftmax::infer(const Attrs& a, const Inference& in) { return infer_same(a, in); }
std::vector<Tensor> LogSoftmax::reference(const Attrs& a, Tensors in, Precision) {
  return for_each_row(a, *in[0], [](const double* x, double* y, int64_t n, int64_t step) {
    const double top = row_maximum(x, n, step);
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i * step] - top);
    for (int64_t i = 0; i < n; ++i) y[i * step] = x[i * step] - top - std::log(sum);
  });
}

OpSpec Hardmax::spec() {
  return softmax_spec("hardmax", 1, "1 at the first maximum along an axis (a NaN is larger than numbers), else 0.");
}
std::vector<TensorType> Hardmax::infer(const Attrs& a, const Inference& in) { return infer_same(a, in); }
std::vector<Tensor> Hardmax::reference(const Attrs& a, Tensors in, Precision) {
  return for_each_row(a, *in[0], [](const double* x, double* y, int64_t n, int64_t step) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; ++i)
      if (x[i * step] > x[best * step] || (std::isnan(x[i * step]) && !std::isnan(x[best * step]))) best = i;
    for (int64_t i = 0; i < n; ++i) y[i * step] = i == best ? 1 : 0;
  });
}

}  // namespace opfuse
