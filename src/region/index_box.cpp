// A slice assignment as exporters write it: indices [0..n) x [0..m) + offsets, spelled out element by element. They are
// affine in each axis, which is read off the first differences and then checked at every element.
#include "region/index_box.hpp"

#include "base/product_of.hpp"

namespace opfuse {

std::optional<std::vector<int64_t>> counted_from_zero(const Tensor& indices, size_t first, size_t stride,
                                                      int64_t extent) {
  std::vector<int64_t> values;
  for (auto i = static_cast<int64_t>(first); i < indices.elements(); i += static_cast<int64_t>(stride)) {
    const int64_t at = indices.integer(i);
    if (at < -extent || at >= extent) return std::nullopt;
    values.push_back(at < 0 ? at + extent : at);
  }
  return values;
}

std::optional<BoxDim> box_dim(const std::vector<int64_t>& values, const std::vector<int64_t>& sizes) {
  BoxDim dim;
  if (values.empty()) return dim;
  dim.start = values[0];
  int64_t pitch = 1, chosen = 1;  // elements from one coordinate of an axis to the next
  for (size_t axis = sizes.size(); axis-- > 0; pitch *= sizes[axis]) {
    if (sizes[axis] < 2) continue;
    const int64_t step = values[static_cast<size_t>(pitch)] - values[0];
    if (step == 0) continue;
    if (step < 0 || dim.axis >= 0) return std::nullopt;
    dim.step = step;
    dim.axis = static_cast<int>(axis);
    chosen = pitch;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t at = dim.axis < 0 ? 0 : static_cast<int64_t>(i) / chosen % sizes[static_cast<size_t>(dim.axis)];
    if (values[i] != dim.start + dim.step * at) return std::nullopt;
  }
  return dim;
}

std::optional<AffineIndices> affine_indices(const Tensor& indices, size_t first, size_t stride,
                                            const std::vector<int64_t>& sizes, int64_t extent) {
  const auto at = [&](int64_t i) {
    const int64_t index = indices.integer(static_cast<int64_t>(first) + i * static_cast<int64_t>(stride));
    return index < 0 ? index + extent : index;
  };
  const int64_t count = product_of(sizes);
  if (count == 0) return std::nullopt;
  AffineIndices affine{at(0), std::vector<int64_t>(sizes.size(), 0)};
  int64_t last = affine.start, pitch = 1;  // elements from one coordinate of an axis to the next
  for (size_t axis = sizes.size(); axis-- > 0; pitch *= sizes[axis]) {
    if (sizes[axis] < 2) continue;
    affine.steps[axis] = at(pitch) - affine.start;
    last += affine.steps[axis] * (sizes[axis] - 1);
  }
  if (at(count - 1) != last) return std::nullopt;  // most others end here
  std::vector<int64_t> coordinates(sizes.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t expected = affine.start;
    for (size_t axis = 0; axis < sizes.size(); ++axis) expected += affine.steps[axis] * coordinates[axis];
    if (at(i) != expected || expected < 0 || expected >= extent) return std::nullopt;
    for (size_t axis = sizes.size(); axis-- > 0 && ++coordinates[axis] == sizes[axis];) coordinates[axis] = 0;
  }
  return affine;
}

bool fills_box(const std::vector<BoxDim>& dims, const std::vector<int64_t>& sizes) {
  std::vector<int> users(sizes.size(), 0);
  for (const BoxDim& dim : dims)
    if (dim.axis >= 0) ++users[static_cast<size_t>(dim.axis)];
  for (size_t axis = 0; axis < sizes.size(); ++axis)
    if (users[axis] > 1 || (users[axis] == 0 && sizes[axis] > 1)) return false;
  return true;
}

}  // namespace opfuse
