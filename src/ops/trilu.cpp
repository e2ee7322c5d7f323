// Trilu: element (i, j) of every matrix stays when j - i >= k (upper) or j - i <= k (lower).
#include "ops/trilu.hpp"

#include <cstring>

#include "base/fail.hpp"
#include "ops/checks.hpp"

namespace opfuse {

OpSpec Trilu::spec() {
  return {.name = "trilu",
          .inputs = {{"x"}, optional_port("k")},
          .outputs = {{"y"}},
          .kind = OpKind::injective,
          .flops_per_element = 0,
          .doc = "Upper or lower triangle of the last two axes."};
}

std::vector<TensorType> Trilu::infer(const Attrs&, const Inference& in) {
  if (in.has(1)) require_integer(in, 1);
  if (!in.shape(0).ranked) return unranked(in, in.dtype(0));
  require_min_rank(in, 0, 2);
  return {{in.dtype(0), in.shape(0)}};
}

std::vector<Tensor> Trilu::reference(const Attrs& a, Tensors in, Precision) {
  const Tensor& x = *in[0];
  const size_t size = byte_size(x.dtype());
  if (size == 0) throw fail(E::unsupported_dtype, "elements of type {} cannot be moved", name_of(x.dtype()));
  const int64_t rows = x.dim(x.rank() - 2), columns = x.dim(x.rank() - 1);
  // Diagonals beyond the matrix are all alike; clamping keeps the comparison below in range.
  const int64_t k = std::clamp(in.size() > 1 && in[1] ? in[1]->integer(0) : 0, -rows - 1, columns + 1);
  Tensor y = x.clone();
  auto* out = static_cast<char*>(y.mutable_data());
  for (int64_t i = 0; i < x.elements(); ++i) {
    const int64_t diagonal = i % columns - i / columns % rows;
    if (a.upper ? diagonal < k : diagonal > k) std::memset(out + static_cast<size_t>(i) * size, 0, size);
  }
  return {y};
}

}  // namespace opfuse
