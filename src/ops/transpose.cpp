// Transpose: a strided read with the operand's strides permuted.
#include "ops/transpose.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "ops/axes.hpp"
#include "ops/moved_dims.hpp"
#include "ops/strided_copy.hpp"

namespace opfuse {

std::vector<size_t> Transpose::permutation(const Attrs& attrs, size_t rank) {
  std::vector<size_t> perm(rank);
  if (attrs.perm.empty()) {
    for (size_t d = 0; d < rank; ++d) perm[d] = rank - 1 - d;
    return perm;
  }
  if (attrs.perm.size() != rank)
    throw fail(E::bad_attribute, "perm has {} entries, but the operand has rank {}", attrs.perm.size(), rank);
  normalize_axes(attrs.perm, rank, "perm");
  for (size_t d = 0; d < rank; ++d) perm[d] = normalize_axis(attrs.perm[d], rank, "perm");
  return perm;
}

std::vector<TensorType> Transpose::infer(const Attrs& attrs, const Inference& in) {
  const Shape& x = in.shape(0);
  if (!x.ranked) return {{in.dtype(0), Shape::unknown()}};
  Shape out;
  for (size_t d : permutation(attrs, x.rank())) out.dims.push_back(x[d]);
  return {{in.dtype(0), out}};
}

std::vector<Tensor> Transpose::reference(const Attrs& attrs, Tensors in, Precision) {
  const auto dense = dense_strides(in[0]->sizes());
  std::vector<int64_t> sizes, strides;
  for (size_t d : permutation(attrs, in[0]->rank())) {
    sizes.push_back(in[0]->dim(d));
    strides.push_back(dense[d]);
  }
  return {strided_copy(*in[0], sizes, strides)};
}

std::optional<std::vector<Dim>> Transpose::dims(const Attrs& a, const Inference& in) {
  return moved_dims<Transpose>(a, in);
}

}  // namespace opfuse
