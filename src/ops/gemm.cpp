// y = alpha * A' B' + beta * c through gemm_f64; transposition is a matter of strides.
#include "ops/gemm.hpp"

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "ops/gemm_f64.hpp"
#include "ops/is_a.hpp"
#include "ops/matmul.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {

OpSpec Gemm::spec() {
  return {.name = "gemm",
          .inputs = {{"a"}, {"b"}, {.name = "c", .optional = true}},
          .outputs = {{"y"}},
          .kind = OpKind::contraction,
          .doc = "Matrix product with optional transposition, scaling and an added matrix."};
}

std::vector<TensorType> Gemm::infer(const Attrs& a, const Inference& in) {
  require_numeric(in, 0);
  require_same_dtype(in, 0, 1);
  require_same_dtype(in, 0, 2);
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  in.require_rank(0, 2);
  in.require_rank(1, 2);
  const Shape &x = in.shape(0), &w = in.shape(1);
  unify(x[a.transA ? 0 : 1], w[a.transB ? 1 : 0], "the inner dimension");
  const Shape y{x[a.transA ? 1 : 0], w[a.transB ? 0 : 1]};
  if (in.has(2)) {
    const Shape& c = in.shape(2);
    bool fits = c.rank() <= 2;
    for (size_t i = 0; fits && i < c.rank(); ++i) fits = c[i] == Dim(1) || may_equal(c[i], y[2 - c.rank() + i]);
    if (!fits) throw fail(E::shape_mismatch, "c has shape {}, which does not broadcast to {}", c.text(), y.text());
    for (size_t i = 0; i < c.rank(); ++i)
      assume(DimRule::one_or_equal, c[i], y[2 - c.rank() + i], "c broadcasts to the result");
  }
  return {{in.dtype(0), y}};
}

std::vector<Tensor> Gemm::reference(const Attrs& a, Tensors in, Precision) {
  const Reals x(*in[0]), w(*in[1]);
  const int64_t m = in[0]->dim(a.transA ? 1 : 0), k = in[0]->dim(a.transA ? 0 : 1), n = in[1]->dim(a.transB ? 0 : 1);
  Tensor y(DType::f64, {m, n});
  double* out = reals(y);
  gemm_f64(m, n, k, a.transA ? MatrixView{x.data(), 1, m} : MatrixView{x.data(), k, 1},
           a.transB ? MatrixView{w.data(), 1, k} : MatrixView{w.data(), n, 1}, out, n);
  if (a.alpha != 1)
    for (int64_t i = 0; i < m * n; ++i) out[i] *= a.alpha;
  if (in.size() > 2 && in[2] && a.beta != 0) {
    const Reals c(*in[2]);
    const std::vector<int64_t>& s = in[2]->sizes();
    const int64_t column = !s.empty() && s.back() != 1 ? 1 : 0;
    const int64_t row = s.size() == 2 && s[0] != 1 ? s[1] : 0;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) out[i * n + j] += a.beta * c[i * row + j * column];
  }
  return {rounded(std::move(y), in[0]->dtype())};
}

Cost Gemm::cost(const Attrs& a, std::span<const TensorType> in, std::span<const TensorType> out) {
  if (!in[0].shape.ranked || !out[0].shape.ranked) return {};
  Cost cost;
  const Dim elements = out[0].shape.elements();
  cost.flops = elements * in[0].shape[a.transA ? 0 : 1] * Dim(2);
  cost.weight_bytes = bytes_of(in[1]);
  if (in.size() > 2 && in[2].dtype != DType::unknown) {
    cost.flops = cost.flops + elements;
    cost.weight_bytes = cost.weight_bytes + bytes_of(in[2]);
  }
  return cost;
}

bool is_matrix_product(const Node& node) { return is_a<Gemm>(node) || is_a<MatMul>(node); }

}  // namespace opfuse
