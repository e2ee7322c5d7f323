// Unsqueeze: the axes are positions in the result.
#include "ops/unsqueeze.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "ops/axes.hpp"
#include "ops/checks.hpp"

namespace opfuse {
namespace {

Shape unsqueezed(const Shape& x, const std::vector<int64_t>& axes) {
  if (!x.ranked) return Shape::unknown();
  const size_t rank = x.rank() + axes.size();
  const std::vector<size_t> added = normalize_axes(axes, rank);
  Shape out;
  size_t from = 0;
  for (size_t d = 0; d < rank; ++d)
    out.dims.push_back(std::binary_search(added.begin(), added.end(), d) ? Dim(1) : x[from++]);
  return out;
}

}  // namespace

std::vector<TensorType> Unsqueeze::infer(const Attrs& attrs, const Inference& in) {
  if (in.has(1) && !in.constant(1)) return unranked(in, in.dtype(0));
  return {{in.dtype(0), unsqueezed(in.shape(0), in.has(1) ? in.integers(1, "axes") : attrs.axes)}};
}

std::vector<Tensor> Unsqueeze::reference(const Attrs& attrs, Tensors in, Precision) {
  const auto axes = in.size() > 1 && in[1] ? in[1]->to_i64() : attrs.axes;
  return {in[0]->reshaped(unsqueezed(Shape::of(in[0]->sizes()), axes).sizes())};
}

std::optional<std::vector<Dim>> Unsqueeze::dims(const Attrs&, const Inference& in) { return in.dims(0); }

}  // namespace opfuse
