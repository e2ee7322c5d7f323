// Shared checks of the structured operators. Every message names the operand and what was found.
#include "ops/checks.hpp"

#include "base/fail.hpp"
#include "tensor/dim_rule.hpp"
#include "tensor/number.hpp"

namespace opfuse {

bool has_unranked(const Inference& in) {
  for (size_t i = 0; i < in.inputs(); ++i)
    if (in.has(i) && !in.shape(i).ranked) return true;
  return false;
}

std::vector<TensorType> unranked(const Inference& in, DType dtype) {
  return std::vector<TensorType>(std::max<size_t>(in.outputs(), 1), TensorType{dtype, Shape::unknown()});
}

void require_float(const Inference& in, size_t i) {
  if (!is_float(in.dtype(i)))
    throw fail(E::unsupported_dtype, "operand {} is {}; a floating-point type is expected", i, name_of(in.dtype(i)));
}

void require_numeric(const Inference& in, size_t i) {
  if (!is_float(in.dtype(i)) && !is_integer(in.dtype(i)))
    throw fail(E::unsupported_dtype, "operand {} is {}; a number type is expected", i, name_of(in.dtype(i)));
}

void require_integer(const Inference& in, size_t i) {
  if (!is_integer(in.dtype(i)))
    throw fail(E::dtype_mismatch, "operand {} is {}; an integer type is expected", i, name_of(in.dtype(i)));
}

void require_same_dtype(const Inference& in, size_t i, size_t j) {
  if (in.has(i) && in.has(j) && in.dtype(i) != in.dtype(j))
    throw fail(E::dtype_mismatch, "operand {} is {} but operand {} is {}", i, name_of(in.dtype(i)), j,
               name_of(in.dtype(j)));
}

void require_min_rank(const Inference& in, size_t i, size_t least) {
  if (in.shape(i).rank() < least)
    throw fail(E::rank_mismatch, "operand {} has shape {}; at least {} dimensions are expected", i, in.shape(i).text(),
               least);
}

void require_vector(const Inference& in, size_t i, const Dim& length, std::string_view what) {
  in.require_rank(i, 1);
  if (!may_equal(in.shape(i)[0], length))
    throw fail(E::shape_mismatch, "{} has {} elements, expected {}", what, in.shape(i)[0].text(), length.text());
  assume(DimRule::equal, in.shape(i)[0], length, fmt::format("the elements of {} are as many as the axis has", what));
}

bool may_equal(const Dim& a, const Dim& b) { return !a.is_constant() || !b.is_constant() || a == b; }

Dim unify(const Dim& a, const Dim& b, std::string_view what) {
  if (!may_equal(a, b))
    throw fail(E::shape_mismatch, "{} differs between operands: {} and {}", what, a.text(), b.text());
  assume(DimRule::equal, a, b, fmt::format("{} is the same in all operands", what));
  return a.is_constant() ? a : b.is_constant() ? b : a;
}

int64_t checked_index(int64_t index, int64_t size) {
  if (index < -size || index >= size)
    throw fail(E::bad_dimension, "index {} is outside an axis of {} elements", index, size);
  return index < 0 ? index + size : index;
}

void check_constant_indices(const Inference& in, size_t i, std::span<const Dim> axes) {
  const Tensor* indices = in.constant(i);
  if (indices == nullptr || !is_integer(indices->dtype()) || axes.empty()) return;
  for (int64_t at = 0; at < indices->elements(); ++at) {
    const Dim& axis = axes[static_cast<size_t>(at) % axes.size()];
    if (!axis.is_constant()) continue;
    const int64_t index = indices->integer(at), size = axis.value();
    if (index < -size || index >= size)
      throw fail(E::bad_dimension, "index {} (element {} of the indices) is outside an axis of {} elements", index, at,
                 size);
  }
}

void set_wrapped(Tensor& y, int64_t i, int64_t value) {
  if (y.dtype() == DType::u64)
    static_cast<int64_t*>(y.mutable_data())[i] = value;
  else
    y.set_integer(i, wrap_to(y.dtype(), value));
}

int64_t product(const std::vector<int64_t>& sizes, size_t from, size_t to) {
  int64_t n = 1;
  for (size_t i = from; i < to; ++i) n *= sizes[i];
  return n;
}

Dim product(const Shape& shape, size_t from, size_t to) {
  Dim n = 1;
  for (size_t i = from; i < to; ++i) n = n * shape[i];
  return n;
}

Dim bytes_of(const TensorType& type) {
  return type.shape.ranked ? type.shape.elements() * Dim(static_cast<int64_t>(byte_size(type.dtype))) : Dim(0);
}

}  // namespace opfuse
