// Shape: start and end are clamped to [0, rank], negative ones count from the end first.
#include "ops/shape.hpp"

#include <algorithm>

namespace opfuse {
namespace {

std::pair<size_t, size_t> range_of(const ShapeOf::Attrs& attrs, size_t rank) {
  const auto n = static_cast<int64_t>(rank);
  auto clamp = [&](int64_t at) { return static_cast<size_t>(std::clamp<int64_t>(at < 0 ? at + n : at, 0, n)); };
  const size_t first = clamp(attrs.start), last = clamp(attrs.end);
  return {first, std::max(first, last)};
}

}  // namespace

std::vector<TensorType> ShapeOf::infer(const Attrs& attrs, const Inference& in) {
  if (!in.shape(0).ranked) return {{DType::i64, Shape::unknown()}};
  auto [first, last] = range_of(attrs, in.shape(0).rank());
  return {{DType::i64, Shape{static_cast<int64_t>(last - first)}}};
}

std::vector<Tensor> ShapeOf::reference(const Attrs& attrs, Tensors in, Precision) {
  auto [first, last] = range_of(attrs, in[0]->rank());
  const auto& sizes = in[0]->sizes();
  const auto begin = sizes.begin();
  return {Tensor::from_i64({begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(last)})};
}

std::optional<std::vector<Dim>> ShapeOf::dims(const Attrs& attrs, const Inference& in) {
  const Shape& x = in.shape(0);
  if (!x.ranked) return std::nullopt;
  auto [first, last] = range_of(attrs, x.rank());
  return std::vector<Dim>(x.dims.begin() + static_cast<std::ptrdiff_t>(first),
                          x.dims.begin() + static_cast<std::ptrdiff_t>(last));
}

}  // namespace opfuse
