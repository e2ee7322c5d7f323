// TopK: a partial sort of positions along the axis.
#include "ops/top_k.hpp"

#include <algorithm>
#include <numeric>

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "ops/ordered.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {
namespace {

void check_k(const Dim& k, const Dim& size) {
  if (k.is_constant() && (k.value() < 0 || (size.is_constant() && k.value() > size.value())))
    throw fail(E::bad_attribute, "k is {}, the axis has {} elements", k.text(), size.text());
  assume(DimRule::at_least, size, k, "the axis has k elements");
}

}  // namespace

OpSpec TopK::spec() {
  return {.name = "top_k",
          .inputs = {{"x"}, optional_port("k")},
          .outputs = {{"values"}, {"indices"}},
          .kind = OpKind::reduction,
          .doc = "The k largest or smallest elements along an axis, and where they were."};
}

std::vector<TensorType> TopK::infer(const Attrs& a, const Inference& in) {
  require_numeric(in, 0);
  std::vector<TensorType> types = {{in.dtype(0), Shape::unknown()}, {DType::i64, Shape::unknown()}};
  types.resize(in.outputs());
  if (!in.shape(0).ranked) return types;
  Shape y = in.shape(0);
  const size_t axis = normalize_axis(a.axis, y.rank());
  Dim k = a.k;
  if (in.has(1)) {
    const std::vector<Dim> given = in.require_dims(1, "k");
    if (given.size() != 1) throw fail(E::shape_mismatch, "k has {} values, one is expected", given.size());
    k = given[0];
  }
  check_k(k, y[axis]);
  y[axis] = k;
  for (TensorType& t : types) t.shape = y;
  return types;
}

std::vector<Tensor> TopK::reference(const Attrs& a, Tensors in, Precision) {
  const Tensor& x = *in[0];
  const size_t axis = normalize_axis(a.axis, x.rank());
  std::vector<int64_t> sizes = x.sizes();
  const int64_t n = sizes[axis], outer = product(sizes, 0, axis), inner = product(sizes, axis + 1, sizes.size());
  const int64_t k = in.size() > 1 && in[1] ? in[1]->integer(0) : a.k;
  check_k(k, n);
  sizes[axis] = k;
  Tensor values(x.dtype(), sizes), indices(DType::i64, sizes);
  with_ordered(x, [&](const auto& v) {
    std::vector<int64_t> order(static_cast<size_t>(n));
    for (int64_t r = 0; r < outer * inner; ++r) {
      const int64_t base = r / inner * n * inner + r % inner;
      const auto at = [&](int64_t i) { return v[static_cast<size_t>(base + i * inner)]; };
      std::iota(order.begin(), order.end(), int64_t{0});
      std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t i, int64_t j) {
        const bool before = a.largest ? precedes(at(j), at(i)) : precedes(at(i), at(j));
        const bool after = a.largest ? precedes(at(i), at(j)) : precedes(at(j), at(i));
        return before || (!after && i < j);
      });
      for (int64_t i = 0; i < k; ++i) {
        const int64_t to = (r / inner * k + i) * inner + r % inner, from = order[static_cast<size_t>(i)];
        if (is_float(x.dtype()))
          values.set_real(to, x.real(base + from * inner));
        else
          set_wrapped(values, to, x.integer(base + from * inner));
        indices.set_integer(to, from);
      }
    }
  });
  return {values, indices};
}

}  // namespace opfuse
