// OneHot: depth gives the new axis, values the two elements that are written.
#include "ops/one_hot.hpp"

#include <cstring>

#include "base/fail.hpp"
#include "ops/checks.hpp"

namespace opfuse {
namespace {

Dim depth_of(const Inference& in) {
  if (const Tensor* depth = in.constant(1)) {
    if (depth->elements() != 1)
      throw fail(E::shape_mismatch, "depth has {} values, one is expected", depth->elements());
    return is_float(depth->dtype()) ? static_cast<int64_t>(depth->real(0)) : depth->integer(0);
  }
  const std::vector<Dim> given = in.require_dims(1, "depth");
  if (given.size() != 1) throw fail(E::shape_mismatch, "depth has {} values, one is expected", given.size());
  return given[0];
}

}  // namespace

OpSpec OneHot::spec() {
  return {.name = "one_hot",
          .inputs = {{"indices"}, {"depth"}, {"values"}},
          .outputs = {{"y"}},
          .kind = OpKind::injective,
          .flops_per_element = 0,
          .doc = "A new axis that holds on_value at the index and off_value elsewhere."};
}

std::vector<TensorType> OneHot::infer(const Attrs& a, const Inference& in) {
  require_numeric(in, 0);
  if (has_unranked(in)) return unranked(in, in.dtype(2));
  require_vector(in, 2, 2, "values");
  Shape y = in.shape(0);
  const size_t axis = normalize_axis(a.axis, y.rank() + 1);
  const Dim depth = depth_of(in);
  if (depth.is_constant() && depth.value() < 0) throw fail(E::bad_dimension, "depth is {}", depth.text());
  y.dims.insert(y.dims.begin() + static_cast<std::ptrdiff_t>(axis), depth);
  return {{in.dtype(2), y}};
}

std::vector<Tensor> OneHot::reference(const Attrs& a, Tensors in, Precision) {
  const Tensor &indices = *in[0], &values = *in[2];
  const size_t size = byte_size(values.dtype());
  if (size == 0) throw fail(E::unsupported_dtype, "elements of type {} cannot be moved", name_of(values.dtype()));
  const int64_t depth = in[1]->integer(0);
  std::vector<int64_t> sizes = indices.sizes();
  const size_t axis = normalize_axis(a.axis, sizes.size() + 1);
  const int64_t inner = product(sizes, axis, sizes.size());
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(axis), depth);
  Tensor y(values.dtype(), sizes);
  const auto* pair = static_cast<const char*>(values.data());
  auto* out = static_cast<char*>(y.mutable_data());
  for (int64_t i = 0; i < y.elements(); ++i) {
    int64_t hot = indices.integer(i / (inner * depth) * inner + i % inner);
    if (hot < 0) hot += depth;
    std::memcpy(out + static_cast<size_t>(i) * size, pair + (hot == i / inner % depth ? size : 0), size);
  }
  return {y};
}

}  // namespace opfuse
