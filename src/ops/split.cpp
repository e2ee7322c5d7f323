// Split: part sizes, then one strided copy per part.
#include "ops/split.hpp"

#include <numeric>

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "ops/strided_copy.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {
namespace {

/// ONNX 18: parts of ceil(size / count), the last one smaller.
std::vector<Dim> equal_parts(const Dim& size, int64_t count) {
  if (count < 1) throw fail(E::bad_attribute, "split has neither part sizes nor num_outputs");
  const Dim part = ceil_div(size, count);
  if (size.is_constant() && size.value() < part.value() * (count - 1))
    throw fail(E::bad_attribute, "{} elements cannot be cut into {} parts of {}", size.text(), count, part.text());
  std::vector<Dim> parts(static_cast<size_t>(count), part);
  parts.back() = size - part * Dim(count - 1);
  return parts;
}

}  // namespace

OpSpec Split::spec() {
  return {.name = "split",
          .inputs = {{"x"}, optional_port("split")},
          .outputs = {variadic_port("y")},
          .kind = OpKind::injective,
          .flops_per_element = 0,
          .doc = "Cuts a tensor along an axis.",
          .moves = Moves::places};
}

std::vector<TensorType> Split::infer(const Attrs& a, const Inference& in) {
  if (!in.shape(0).ranked) return unranked(in, in.dtype(0));
  const Shape& x = in.shape(0);
  const size_t axis = normalize_axis(a.axis, x.rank());
  std::vector<Dim> parts(a.split.begin(), a.split.end());
  if (in.has(1)) parts = in.require_dims(1, "the sizes of the parts");
  const bool given = !parts.empty();
  if (!given) parts = equal_parts(x[axis], a.num_outputs);
  if (parts.size() != in.outputs())
    throw fail(E::arity_mismatch, "{} parts for {} outputs", parts.size(), in.outputs());
  Dim sum = 0;
  for (const Dim& p : parts) {
    if (p.is_constant() && p.value() < 0) throw fail(E::bad_attribute, "a part has {} elements", p.text());
    sum = sum + p;
  }
  if (given && !may_equal(sum, x[axis]))
    throw fail(E::shape_mismatch, "the parts have {} elements in all, axis {} has {}", sum.text(), axis,
               x[axis].text());
  if (given) assume(DimRule::equal, sum, x[axis], fmt::format("the parts add up to axis {}", axis));
  std::vector<TensorType> types;
  for (const Dim& p : parts) {
    types.push_back({in.dtype(0), x});
    types.back().shape[axis] = p;
  }
  return types;
}

std::vector<Tensor> Split::reference(const Attrs& a, Tensors in, Precision) {
  const Tensor& x = *in[0];
  const size_t axis = normalize_axis(a.axis, x.rank());
  std::vector<int64_t> parts = a.split;
  if (in.size() > 1 && in[1]) parts = in[1]->to_i64();
  if (parts.empty())
    for (const Dim& p : equal_parts(x.dim(axis), a.num_outputs)) parts.push_back(p.value());
  if (std::accumulate(parts.begin(), parts.end(), int64_t{0}) != x.dim(axis))
    throw fail(E::shape_mismatch, "the parts {} do not add up to {}", text_of(parts), x.dim(axis));
  const std::vector<int64_t> pitch = dense_strides(x.sizes());
  std::vector<Tensor> results;
  std::vector<int64_t> sizes = x.sizes();
  int64_t offset = 0;
  for (int64_t part : parts) {
    if (part < 0) throw fail(E::bad_attribute, "a part has {} elements", part);
    sizes[axis] = part;
    results.push_back(strided_copy(x, sizes, pitch, offset * pitch[axis]));
    offset += part;
  }
  return results;
}

}  // namespace opfuse
