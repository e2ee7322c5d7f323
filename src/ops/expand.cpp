// Expand: broadcasting of the operand with a shape, both ways (a 1 in `shape` keeps the operand's dimension).
#include "ops/expand.hpp"

#include "base/fail.hpp"
#include "ir/dim_values.hpp"
#include "ops/checks.hpp"
#include "ops/strided_copy.hpp"

namespace opfuse {
namespace {

void check_target(const std::vector<Dim>& target) {
  for (const Dim& d : target)
    if (d.is_constant() && d.value() < 0)
      throw fail(E::bad_dimension, "expand cannot give the negative dimension {}", d.value());
}

}  // namespace

std::vector<TensorType> Expand::infer(const Attrs&, const Inference& in) {
  const auto target = in.dims(1);
  if (!target) return unranked(in, in.dtype(0));
  check_target(*target);
  return {{in.dtype(0), broadcast(in.shape(0), Shape(*target))}};
}

std::vector<Tensor> Expand::reference(const Attrs&, Tensors in, Precision) {
  const std::vector<int64_t> target = in[1]->to_i64();
  check_target({target.begin(), target.end()});
  const auto sizes = broadcast(in[0]->sizes(), target);
  const auto dense = dense_strides(in[0]->sizes());
  std::vector<int64_t> strides(sizes.size(), 0);
  for (size_t d = 0; d < dense.size(); ++d)
    if (in[0]->dim(d) != 1) strides[sizes.size() - dense.size() + d] = dense[d];
  return {strided_copy(*in[0], sizes, strides)};
}

std::optional<std::vector<Dim>> Expand::dims(const Attrs&, const Inference& in) {
  auto value = in.dims(0);
  auto target = in.dims(1);
  if (!value || !target || target->size() > 1) return std::nullopt;
  const Dim count = target->empty() ? Dim(1) : (*target)[0];
  if (value->size() != 1) return value;
  if (!count.is_constant() || count.value() < 1 || count.value() > most_dim_values()) return std::nullopt;
  return std::vector<Dim>(static_cast<size_t>(count.value()), (*value)[0]);
}

}  // namespace opfuse
