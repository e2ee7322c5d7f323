// Slices are the keys of an ordered map; NaNs are one value, behind all others.
#include "ops/unique.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "ops/defined_size.hpp"

namespace opfuse {
namespace {

struct Element {
  bool nan = false;
  double real = 0;
  int64_t integer = 0;
  auto operator<=>(const Element&) const = default;
};

Element element(const Tensor& x, int64_t i) {
  if (!is_float(x.dtype())) return {false, 0, x.integer(i)};
  const double value = x.real(i);
  return std::isnan(value) ? Element{true, 0, 0} : Element{false, value, 0};
}

std::optional<size_t> axis_of(const Unique::Attrs& a, size_t rank) {
  if (a.axis.size() > 1) throw fail(E::bad_attribute, "unique along {} axes", a.axis.size());
  return a.axis.empty() ? std::nullopt : std::optional(normalize_axis(a.axis[0], rank));
}

}  // namespace

OpSpec Unique::spec() {
  return {.name = "unique",
          .inputs = {{"x"}},
          .outputs = {{"y"}, optional_port("first"), optional_port("inverse"), optional_port("counts")},
          .kind = OpKind::shape,
          .flops_per_element = 0,
          .doc = "What differs from each other."};
}

std::vector<TensorType> Unique::infer(const Attrs& a, const Inference& in) {
  std::vector<TensorType> types(in.outputs(), {DType::i64, Shape::unknown()});
  types[0].dtype = in.dtype(0);
  if (!in.shape(0).ranked) return types;
  if (const Tensor* x = in.constant(0)) {
    const std::vector<Tensor> results = reference(a, std::array<const Tensor*, 1>{x}, Precision::typed);
    for (size_t i = 0; i < types.size(); ++i) types[i] = results[i].type();
    return types;
  }
  const std::optional<Dim> count = defined_size(a.defines, 0);
  if (!count) return types;
  const std::optional<size_t> axis = axis_of(a, in.shape(0).rank());
  const Dim places = axis ? in.shape(0)[*axis] : in.shape(0).elements();
  types[0].shape = axis ? in.shape(0) : Shape{*count};
  if (axis) types[0].shape[*axis] = *count;
  for (size_t i = 1; i < types.size(); ++i) types[i].shape = Shape{i == 2 ? places : *count};
  return types;
}

std::vector<Tensor> Unique::reference(const Attrs& a, Tensors in, Precision) {
  const Tensor& x = *in[0];
  const std::optional<size_t> axis = axis_of(a, x.rank());
  std::vector<int64_t> sizes = axis ? x.sizes() : std::vector<int64_t>{x.elements()};
  const size_t along = axis.value_or(0);
  const int64_t outer = product(sizes, 0, along), n = sizes[along], inner = product(sizes, along + 1, sizes.size());
  std::map<std::vector<Element>, std::vector<int64_t>> places;
  for (int64_t i = 0; i < n; ++i) {
    std::vector<Element> key;
    for (int64_t k = 0; k < outer * inner; ++k) key.push_back(element(x, (k / inner * n + i) * inner + k % inner));
    places[key].push_back(i);
  }
  std::vector<std::vector<int64_t>> groups;
  for (auto& [key, list] : places) groups.push_back(std::move(list));
  if (!a.sorted) std::sort(groups.begin(), groups.end());
  const auto count = static_cast<int64_t>(groups.size());
  sizes[along] = count;
  Tensor y(x.dtype(), sizes);
  for (int64_t i = 0, all = y.elements(); i < all; ++i) {
    const int64_t from =
        (i / inner / count * n + groups[static_cast<size_t>(i / inner % count)][0]) * inner + i % inner;
    if (is_float(x.dtype()))
      y.set_real(i, x.real(from));
    else
      set_wrapped(y, i, x.integer(from));
  }
  std::vector<int64_t> first, counts, inverse(static_cast<size_t>(n));
  for (size_t g = 0; g < groups.size(); ++g) {
    first.push_back(groups[g][0]);
    counts.push_back(static_cast<int64_t>(groups[g].size()));
    for (const int64_t i : groups[g]) inverse[static_cast<size_t>(i)] = static_cast<int64_t>(g);
  }
  return {y, Tensor::from_i64(first), Tensor::from_i64(inverse), Tensor::from_i64(counts)};
}

}  // namespace opfuse
