// EyeLike: ones where column - row = k.
#include "ops/eye_like.hpp"

#include "base/fail.hpp"

namespace opfuse {

std::vector<TensorType> EyeLike::infer(const Attrs& attrs, const Inference& in) {
  in.require_rank(0, 2);
  return {{attrs.dtype == DType::unknown ? in.dtype(0) : attrs.dtype, in.shape(0)}};
}

std::vector<Tensor> EyeLike::reference(const Attrs& attrs, Tensors in, Precision) {
  Tensor out(attrs.dtype == DType::unknown ? in[0]->dtype() : attrs.dtype, in[0]->sizes());
  const int64_t rows = out.dim(0), columns = out.dim(1);
  for (int64_t row = 0; row < rows; ++row) {
    if (attrs.k >= columns || attrs.k <= -rows) break;
    const int64_t column = row + attrs.k;
    if (column >= 0 && column < columns) out.set_real(row * columns + column, 1);
  }
  return {out};
}

}  // namespace opfuse
