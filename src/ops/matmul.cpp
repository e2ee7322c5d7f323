// Matrix product over broadcast batch dimensions, one gemm_f64 per matrix. Integers are multiplied exactly.
#include "ops/matmul.hpp"

#include "base/fail.hpp"
#include "base/parallel.hpp"
#include "ops/checks.hpp"
#include "ops/gemm_f64.hpp"

namespace opfuse {
namespace {

/// Operand shapes as matrices, and which unit dimensions a vector operand added.
struct Promoted {
  Shape a, b;
  bool row = false, column = false;
};

Promoted promote(Shape a, Shape b) {
  Promoted p{std::move(a), std::move(b)};
  if (p.a.rank() == 0 || p.b.rank() == 0)
    throw fail(E::rank_mismatch, "a scalar has no matrix product").hint("use Mul");
  if ((p.row = p.a.rank() == 1)) p.a.dims.insert(p.a.dims.begin(), Dim(1));
  if ((p.column = p.b.rank() == 1)) p.b.dims.push_back(Dim(1));
  return p;
}

Shape batch_of(const Shape& s) { return Shape(std::vector<Dim>(s.dims.begin(), s.dims.end() - 2)); }

/// Offset in matrices of batch element `i` (row-major in `batch`) within an operand whose batch sizes may be 1.
int64_t matrix_index(int64_t i, const std::vector<int64_t>& batch, const std::vector<int64_t>& own) {
  int64_t index = 0, pitch = 1;
  for (size_t d = batch.size(); d-- > 0; i /= batch[d]) {
    if (batch.size() - d > own.size()) continue;
    const int64_t size = own[d - (batch.size() - own.size())];
    if (size != 1) index += i % batch[d] * pitch;
    pitch *= size;
  }
  return index;
}

void integer_product(int64_t m, int64_t n, int64_t k, const Tensor& a, int64_t a0, const Tensor& b, int64_t b0,
                     Tensor& y, int64_t y0) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      uint64_t sum = 0;  // wraps like the hardware
      for (int64_t l = 0; l < k; ++l)
        sum += static_cast<uint64_t>(a.integer(a0 + i * k + l)) * static_cast<uint64_t>(b.integer(b0 + l * n + j));
      set_wrapped(y, y0 + i * n + j, static_cast<int64_t>(sum));
    }
}

}  // namespace

OpSpec MatMul::spec() {
  return {.name = "matmul",
          .inputs = {{"a"}, {"b"}},
          .outputs = {{"y"}},
          .kind = OpKind::contraction,
          .doc = "Matrix product; batch dimensions broadcast."};
}

std::vector<TensorType> MatMul::infer(const Attrs&, const Inference& in) {
  require_numeric(in, 0);
  require_same_dtype(in, 0, 1);
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  const Promoted p = promote(in.shape(0), in.shape(1));
  unify(p.a.dims.back(), p.b[p.b.rank() - 2], "the inner dimension");
  Shape y = broadcast(batch_of(p.a), batch_of(p.b));
  if (!p.row) y.dims.push_back(p.a[p.a.rank() - 2]);
  if (!p.column) y.dims.push_back(p.b.dims.back());
  return {{in.dtype(0), y}};
}

std::vector<Tensor> MatMul::reference(const Attrs&, Tensors in, Precision) {
  const Promoted p = promote(Shape::of(in[0]->sizes()), Shape::of(in[1]->sizes()));
  int64_t m = p.a[p.a.rank() - 2].value();
  const int64_t k = p.a.dims.back().value(), n = p.b.dims.back().value();
  const auto own_a = batch_of(p.a).sizes(), own_b = batch_of(p.b).sizes();
  const auto batch = broadcast(batch_of(p.a), batch_of(p.b)).sizes();
  std::vector<int64_t> sizes = batch;
  if (!p.row) sizes.push_back(m);
  if (!p.column) sizes.push_back(n);
  int64_t count = product(batch, 0, batch.size());
  if (product(sizes, 0, sizes.size()) == 0) return {Tensor(in[0]->dtype(), sizes)};
  if (product(own_b, 0, own_b.size()) == 1 && product(own_a, 0, own_a.size()) == count) {
    m *= count;  // one right factor for all (a linear layer on a sequence): one product with all rows
    count = 1;
  }

  const bool integers = !is_float(in[0]->dtype());
  Tensor y(integers ? in[0]->dtype() : DType::f64, sizes);
  if (integers) {
    for (int64_t i = 0; i < count; ++i)
      integer_product(m, n, k, *in[0], matrix_index(i, batch, own_a) * m * k, *in[1],
                      matrix_index(i, batch, own_b) * k * n, y, i * m * n);
    return {y};
  }
  const Reals a(*in[0]), b(*in[1]);
  const bool many = count >= 4;  // threads over matrices, or inside one
  const auto one = [&](int64_t i) {
    gemm_f64(m, n, k, {a.data() + matrix_index(i, batch, own_a) * m * k, k, 1},
             {b.data() + matrix_index(i, batch, own_b) * k * n, n, 1}, reals(y) + i * m * n, n, many ? 1 : 0);
  };
  parallel_for(count, one, many && count * m * n * k >= (int64_t{1} << 18) ? 0 : 1);
  return {rounded(std::move(y), in[0]->dtype())};
}

Cost MatMul::cost(const Attrs&, std::span<const TensorType> in, std::span<const TensorType> out) {
  if (!in[0].shape.ranked || !out[0].shape.ranked) return {};
  return {.flops = out[0].shape.elements() * in[0].shape.dims.back() * Dim(2),
          .weight_bytes = in[1].shape.ranked && in[1].shape.rank() <= 2 ? bytes_of(in[1]) : Dim(0)};
}

}  // namespace opfuse
