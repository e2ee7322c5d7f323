// NonZero: the result's shape depends on values.
#include "ops/non_zero.hpp"

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "ops/defined_size.hpp"

namespace opfuse {
namespace {

std::vector<int64_t> positions(const Tensor& x) {
  std::vector<int64_t> found;
  for (int64_t i = 0; i < x.elements(); ++i)
    if (is_float(x.dtype()) ? x.real(i) != 0 : x.integer(i) != 0) found.push_back(i);
  return found;
}

}  // namespace

OpSpec NonZero::spec() {
  return {.name = "non_zero",
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .kind = OpKind::shape,
          .flops_per_element = 0,
          .doc = "Coordinates of the non-zero elements."};
}

std::vector<TensorType> NonZero::infer(const Attrs& a, const Inference& in) {
  const Tensor* x = in.constant(0);
  if (!in.shape(0).ranked) return unranked(in, DType::i64);
  if (!x) {
    const auto count = defined_size(a.defines, 0);
    if (!count) return unranked(in, DType::i64);
    return {{DType::i64, Shape{static_cast<int64_t>(in.shape(0).rank()), *count}}};
  }
  return {{DType::i64, Shape{static_cast<int64_t>(x->rank()), static_cast<int64_t>(positions(*x).size())}}};
}

std::vector<Tensor> NonZero::reference(const Attrs&, Tensors in, Precision) {
  const Tensor& x = *in[0];
  const std::vector<int64_t> found = positions(x);
  const auto count = static_cast<int64_t>(found.size());
  Tensor y(DType::i64, {static_cast<int64_t>(x.rank()), count});
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = found[static_cast<size_t>(i)];
    for (size_t d = x.rank(); d-- > 0; rest /= x.dim(d))
      y.set_integer(static_cast<int64_t>(d) * count + i, rest % x.dim(d));
  }
  return {y};
}

}  // namespace opfuse
