// Flatten: [d0, ..., dn] -> [d0 * ... * d(axis-1), d(axis) * ... * dn].
#include "ops/flatten.hpp"

#include "base/fail.hpp"

namespace opfuse {
namespace {

Shape flattened(const Shape& x, int64_t axis) {
  if (!x.ranked) return Shape::unknown();
  const auto rank = static_cast<int64_t>(x.rank());
  if (axis < -rank || axis > rank) throw fail(E::bad_attribute, "axis is {}, but the rank is {}", axis, rank);
  const int64_t split = axis < 0 ? axis + rank : axis;
  Shape out{1, 1};
  for (int64_t d = 0; d < rank; ++d) out[d < split ? 0 : 1] = out[d < split ? 0 : 1] * x[static_cast<size_t>(d)];
  return out;
}

}  // namespace

std::vector<TensorType> Flatten::infer(const Attrs& attrs, const Inference& in) {
  return {{in.dtype(0), flattened(in.shape(0), attrs.axis)}};
}

std::vector<Tensor> Flatten::reference(const Attrs& attrs, Tensors in, Precision) {
  return {in[0]->reshaped(flattened(Shape::of(in[0]->sizes()), attrs.axis).sizes())};
}

std::optional<std::vector<Dim>> Flatten::dims(const Attrs&, const Inference& in) { return in.dims(0); }

}  // namespace opfuse
