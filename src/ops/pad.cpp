// Pad: amounts per axis, then a table of source positions per axis (-1: the constant).
#include "ops/pad.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "ops/table_copy.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {
namespace {

/// Amounts for every axis; `axes` (may be null) says which axes `pads` lists.
template <class T>
std::pair<std::vector<T>, std::vector<T>> amounts(const std::vector<T>& pads, const std::vector<int64_t>* axes,
                                                  size_t rank) {
  const size_t n = axes ? axes->size() : rank;
  if (pads.size() != 2 * n) throw fail(E::bad_attribute, "pads has {} values, expected {}", pads.size(), 2 * n);
  std::vector<T> begin(rank, T(0)), end(rank, T(0));
  if (axes) normalize_axes(*axes, rank, "axes");
  for (size_t i = 0; i < n; ++i) {
    const size_t axis = axes ? normalize_axis((*axes)[i], rank) : i;
    begin[axis] = pads[i];
    end[axis] = pads[i + n];
  }
  return {begin, end};
}

int64_t remainder(int64_t a, int64_t n) { return (a % n + n) % n; }

/// Where element `i` of a padded axis (0: the first of the operand) comes from.
int64_t source(PadMode mode, int64_t i, int64_t size) {
  if (i >= 0 && i < size) return i;
  switch (mode) {
    case PadMode::constant:
      return -1;
    case PadMode::edge:
      return i < 0 ? 0 : size - 1;
    case PadMode::wrap:
      return remainder(i, size);
    case PadMode::reflect:
      break;
  }
  if (size == 1) return 0;
  const int64_t period = 2 * (size - 1), at = remainder(i, period);
  return at < size ? at : period - at;
}

}  // namespace

OpSpec Pad::spec() {
  return {.name = "pad",
          .inputs = {{"x"}, optional_port("pads"), optional_port("constant_value"), optional_port("axes")},
          .outputs = {{"y"}},
          .kind = OpKind::injective,
          .flops_per_element = 0,
          .doc = "Adds or cuts elements before and after each axis."};
}

std::vector<TensorType> Pad::infer(const Attrs& a, const Inference& in) {
  require_same_dtype(in, 0, 2);
  if (!in.shape(0).ranked) return unranked(in, in.dtype(0));
  Shape y = in.shape(0);
  std::vector<Dim> pads(a.pads.begin(), a.pads.end());
  if (in.has(1)) pads = in.require_dims(1, "pads");
  std::vector<int64_t> axes;
  if (in.has(3)) axes = in.integers(3, "axes");
  const auto [begin, end] = amounts(pads, in.has(3) ? &axes : nullptr, y.rank());
  for (size_t i = 0; i < y.rank(); ++i) {
    const Dim size = y[i];
    y[i] = size + begin[i] + end[i];
    if (y[i].is_constant() && y[i].value() < 0)
      throw fail(E::bad_dimension, "pads cut {} elements from axis {} of {}", (size - y[i]).text(), i, size.text());
    const bool grows = !(begin[i] == Dim(0) && end[i] == Dim(0));
    if (a.mode != PadMode::constant && size == Dim(0) && grows)
      throw fail(E::bad_dimension, "axis {} is empty: there is nothing to repeat", i);
    if (a.mode != PadMode::constant && grows)
      assume(DimRule::at_least, size, 1, fmt::format("axis {} has elements to repeat", i));
  }
  return {{in.dtype(0), y}};
}

std::vector<Tensor> Pad::reference(const Attrs& a, Tensors in, Precision) {
  const Tensor& x = *in[0];
  const auto given = [&](size_t i) { return i < in.size() && in[i]; };
  const std::vector<int64_t> axes = given(3) ? in[3]->to_i64() : std::vector<int64_t>{};
  const auto [begin, end] = amounts(given(1) ? in[1]->to_i64() : a.pads, given(3) ? &axes : nullptr, x.rank());
  std::vector<std::vector<int64_t>> table(x.rank());
  for (size_t d = 0; d < x.rank(); ++d)
    for (int64_t i = -begin[d]; i < x.dim(d) + end[d]; ++i) table[d].push_back(source(a.mode, i, x.dim(d)));
  const Tensor value = given(2) && in[2]->elements() > 0 ? *in[2] : Tensor::scalar(x.dtype(), a.value);
  return {table_copy(x, table, &value)};
}

}  // namespace opfuse
