// Indexed reads: runs of contiguous elements, copied as bytes.
#include "ops/gather.hpp"

#include "base/copy_bytes.hpp"
#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "ops/indices.hpp"
#include "ops/strided_copy.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {
namespace {

void require_movable(const Tensor& x) {
  if (byte_size(x.dtype()) == 0)
    throw fail(E::unsupported_dtype, "elements of type {} cannot be moved", name_of(x.dtype()));
}

void copy_run(Tensor& y, int64_t to, const Tensor& x, int64_t from, int64_t count) {
  const size_t size = byte_size(x.dtype());
  copy_bytes(static_cast<char*>(y.mutable_data()) + static_cast<size_t>(to) * size,
             static_cast<const char*>(x.data()) + static_cast<size_t>(from) * size, static_cast<size_t>(count) * size);
}

OpSpec gather_spec(const char* name, const char* doc) {
  return {.name = name,
          .inputs = {{"x"}, {"indices"}},
          .outputs = {{"y"}},
          .kind = OpKind::injective,
          .flops_per_element = 0,
          .doc = doc,
          .moves = Moves::places};
}

}  // namespace

OpSpec Gather::spec() { return gather_spec("gather", "Slices of a tensor chosen by indices along an axis."); }

std::vector<TensorType> Gather::infer(const Attrs& a, const Inference& in) {
  require_integer(in, 1);
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  const Shape &x = in.shape(0), &indices = in.shape(1);
  const size_t axis = normalize_axis(a.axis, x.rank());
  check_constant_indices(in, 1, {&x[axis], 1});
  assume(DimRule::at_least, x[axis], min(indices.elements(), Dim(1)), "an empty axis has no element to gather");
  assume_inside(in, 1, x[axis]);
  std::vector<Dim> y(x.dims.begin(), x.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  y.insert(y.end(), indices.dims.begin(), indices.dims.end());
  y.insert(y.end(), x.dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.dims.end());
  return {{in.dtype(0), Shape(std::move(y))}};
}

std::vector<Tensor> Gather::reference(const Attrs& a, Tensors in, Precision) {
  const Tensor &x = *in[0], &indices = *in[1];
  require_movable(x);
  const size_t axis = normalize_axis(a.axis, x.rank());
  const int64_t outer = product(x.sizes(), 0, axis), inner = product(x.sizes(), axis + 1, x.rank());
  const int64_t size = x.dim(axis), count = indices.elements();
  std::vector<int64_t> sizes(x.sizes().begin(), x.sizes().begin() + static_cast<std::ptrdiff_t>(axis));
  sizes.insert(sizes.end(), indices.sizes().begin(), indices.sizes().end());
  sizes.insert(sizes.end(), x.sizes().begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.sizes().end());
  Tensor y(x.dtype(), sizes);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = checked_index(indices.integer(i), size);
    for (int64_t o = 0; o < outer; ++o) copy_run(y, (o * count + i) * inner, x, (o * size + at) * inner, inner);
  }
  return {y};
}

std::optional<std::vector<Dim>> Gather::dims(const Attrs&, const Inference& in) {
  const auto values = in.dims(0);
  if (!values || !in.constant(1) || !in.shape(0).ranked || in.shape(0).rank() != 1) return std::nullopt;
  std::vector<Dim> taken;
  for (int64_t i : in.integers(1, "indices"))
    taken.push_back((*values)[static_cast<size_t>(checked_index(i, static_cast<int64_t>(values->size())))]);
  return taken;
}

OpSpec GatherElements::spec() { return gather_spec("gather_elements", "One element per index along an axis."); }

std::vector<TensorType> GatherElements::infer(const Attrs& a, const Inference& in) {
  require_integer(in, 1);
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  const size_t axis = normalize_axis(a.axis, in.shape(0).rank());
  in.require_rank(1, in.shape(0).rank());
  for (size_t d = 0; d < in.shape(0).rank(); ++d) {
    const Dim &x = in.shape(0)[d], &i = in.shape(1)[d];
    if (d != axis && x.is_constant() && i.is_constant() && i.value() > x.value())
      throw fail(E::shape_mismatch, "indices have {} elements on axis {}, the operand {}", i.text(), d, x.text());
    if (d != axis) assume(DimRule::at_least, x, i, fmt::format("indices lie inside axis {}", d));
  }
  check_constant_indices(in, 1, {&in.shape(0)[axis], 1});
  assume(DimRule::at_least, in.shape(0)[axis], min(in.shape(1).elements(), Dim(1)),
         "an empty axis has no element to gather");
  assume_inside(in, 1, in.shape(0)[axis]);
  return {{in.dtype(0), in.shape(1)}};
}

std::vector<Tensor> GatherElements::reference(const Attrs& a, Tensors in, Precision) {
  const Tensor &x = *in[0], &indices = *in[1];
  require_movable(x);
  const size_t axis = normalize_axis(a.axis, x.rank());
  const std::vector<int64_t> pitch = dense_strides(x.sizes());
  Tensor y(x.dtype(), indices.sizes());
  for (int64_t i = 0; i < y.elements(); ++i) {
    int64_t rest = i, from = 0;
    for (size_t d = x.rank(); d-- > 0; rest /= indices.dim(d))
      from += (d == axis ? checked_index(indices.integer(i), x.dim(d)) : rest % indices.dim(d)) * pitch[d];
    copy_run(y, i, x, from, 1);
  }
  return {y};
}

OpSpec GatherND::spec() { return gather_spec("gather_nd", "Slices of a tensor chosen by index tuples."); }

std::vector<TensorType> GatherND::infer(const Attrs& a, const Inference& in) {
  require_integer(in, 1);
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  const Shape &x = in.shape(0), &indices = in.shape(1);
  const auto rank = static_cast<int64_t>(x.rank());
  require_min_rank(in, 0, 1);
  require_min_rank(in, 1, 1);
  const int64_t tuple = indices.dims.back().value();
  if (a.batch_dims < 0 || a.batch_dims >= static_cast<int64_t>(indices.rank()) || tuple < 0 ||
      a.batch_dims + tuple > rank)
    throw fail(E::shape_mismatch, "index tuples of {} after {} batch dimensions do not fit {}", tuple, a.batch_dims,
               x.text());
  for (int64_t i = 0; i < a.batch_dims; ++i) unify(x[size_t(i)], indices[size_t(i)], "a batch dimension");
  check_constant_indices(in, 1, {x.dims.data() + a.batch_dims, static_cast<size_t>(tuple)});
  Dim tuples = 1;
  for (size_t d = 0; d + 1 < indices.rank(); ++d) tuples = tuples * indices[d];
  for (int64_t t = 0; t < tuple; ++t) {
    const Dim& axis = x[size_t(a.batch_dims + t)];
    assume(DimRule::at_least, axis, min(tuples, Dim(1)), "an empty axis has no element to gather");
    assume_inside(in, 1, axis, t, tuple);
  }
  std::vector<Dim> y(indices.dims.begin(), indices.dims.end() - 1);
  y.insert(y.end(), x.dims.begin() + a.batch_dims + tuple, x.dims.end());
  return {{in.dtype(0), Shape(std::move(y))}};
}

std::vector<Tensor> GatherND::reference(const Attrs& a, Tensors in, Precision) {
  const Tensor &x = *in[0], &indices = *in[1];
  require_movable(x);
  const auto batch = static_cast<size_t>(a.batch_dims), tuple = static_cast<size_t>(indices.sizes().back());
  std::vector<int64_t> sizes(indices.sizes().begin(), indices.sizes().end() - 1);
  const int64_t tuples = product(sizes, 0, sizes.size()), run = product(x.sizes(), batch + tuple, x.rank());
  const int64_t per_batch = product(sizes, batch, sizes.size());
  sizes.insert(sizes.end(), x.sizes().begin() + static_cast<std::ptrdiff_t>(batch + tuple), x.sizes().end());
  Tensor y(x.dtype(), sizes);
  for (int64_t i = 0; i < tuples; ++i) {
    int64_t from = per_batch > 0 ? i / per_batch : 0;
    for (size_t t = 0; t < tuple; ++t)
      from =
          from * x.dim(batch + t) + checked_index(indices.integer(i * int64_t(tuple) + int64_t(t)), x.dim(batch + t));
    copy_run(y, i * run, x, from * run, run);
  }
  return {y};
}

}  // namespace opfuse
