// ConstantOfShape: a filled tensor.
#include "ops/constant_of_shape.hpp"

#include <cmath>

#include "base/fail.hpp"
#include "ir/dim_values.hpp"
#include "ops/checks.hpp"

namespace opfuse {
namespace {

void check_fill(const ConstantOfShape::Attrs& attrs) {
  if (is_float(attrs.dtype)) return;
  if (byte_size(attrs.dtype) == 0 || attrs.value != std::floor(attrs.value) ||
      std::fabs(attrs.value) > 9007199254740992.0)
    throw fail(E::bad_attribute, "a tensor of {} cannot be filled with {}", name_of(attrs.dtype), attrs.value);
}

}  // namespace

std::vector<TensorType> ConstantOfShape::infer(const Attrs& attrs, const Inference& in) {
  check_fill(attrs);
  const auto target = in.dims(0);
  if (!target) return unranked(in, attrs.dtype);
  for (const Dim& d : *target)
    if (d.is_constant() && d.value() < 0) throw fail(E::bad_dimension, "dimension {} is negative", d.value());
  return {{attrs.dtype, Shape(*target)}};
}

std::vector<Tensor> ConstantOfShape::reference(const Attrs& attrs, Tensors in, Precision) {
  check_fill(attrs);
  Tensor out(attrs.dtype, in[0]->to_i64());
  if (attrs.value == 0) return {out};
  for (int64_t i = 0, n = out.elements(); i < n; ++i) {
    if (is_float(attrs.dtype))
      out.set_real(i, attrs.value);
    else
      out.set_integer(i, static_cast<int64_t>(attrs.value));
  }
  return {out};
}

std::optional<std::vector<Dim>> ConstantOfShape::dims(const Attrs& attrs, const Inference& in) {
  auto target = in.dims(0);
  if (!target || target->size() > 1 || is_float(attrs.dtype)) return std::nullopt;
  const Dim count = target->empty() ? Dim(1) : (*target)[0];
  if (!count.is_constant() || count.value() < 0 || count.value() > most_dim_values()) return std::nullopt;
  return std::vector<Dim>(static_cast<size_t>(count.value()), Dim(static_cast<int64_t>(attrs.value)));
}

}  // namespace opfuse
