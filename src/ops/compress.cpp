// A condition that is shorter than the axis leaves out what lies behind its end.
#include "ops/compress.hpp"

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "ops/defined_size.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {
namespace {

std::optional<size_t> axis_of(const Compress::Attrs& a, size_t rank) {
  if (a.axis.size() > 1) throw fail(E::bad_attribute, "compress along {} axes", a.axis.size());
  return a.axis.empty() ? std::nullopt : std::optional(normalize_axis(a.axis[0], rank));
}

std::vector<int64_t> places_of(const Tensor& condition) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < condition.elements(); ++i)
    if (condition.integer(i) != 0) places.push_back(i);
  return places;
}

}  // namespace

OpSpec Compress::spec() {
  return {.name = "compress",
          .inputs = {{"x"}, {"condition"}},
          .outputs = {{"y"}},
          .kind = OpKind::shape,
          .flops_per_element = 0,
          .doc = "What a condition keeps."};
}

std::vector<TensorType> Compress::infer(const Attrs& a, const Inference& in) {
  if (in.dtype(1) != DType::boolean) throw fail(E::dtype_mismatch, "the condition is {}", name_of(in.dtype(1)));
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  in.require_rank(1, 1);
  const Shape& x = in.shape(0);
  const std::optional<size_t> axis = axis_of(a, x.rank());
  assume(DimRule::at_least, axis ? x[*axis] : x.elements(), in.shape(1)[0], "there are no more conditions than places");
  const std::optional<Dim> count = in.constant(1)
                                       ? std::optional(Dim(static_cast<int64_t>(places_of(*in.constant(1)).size())))
                                       : defined_size(a.defines, 0);
  if (!count) return unranked(in, in.dtype(0));
  Shape y = axis ? x : Shape{*count};
  if (axis) y[*axis] = *count;
  return {{in.dtype(0), y}};
}

std::vector<Tensor> Compress::reference(const Attrs& a, Tensors in, Precision) {
  const Tensor& x = *in[0];
  const std::optional<size_t> axis = axis_of(a, x.rank());
  const std::vector<int64_t> places = places_of(*in[1]);
  const auto count = static_cast<int64_t>(places.size());
  std::vector<int64_t> sizes = axis ? x.sizes() : std::vector<int64_t>{count};
  const int64_t along = axis ? sizes[*axis] : x.elements(), inner = axis ? product(sizes, *axis + 1, sizes.size()) : 1;
  if (axis) sizes[*axis] = count;
  Tensor y(x.dtype(), sizes);
  for (int64_t i = 0, n = y.elements(); i < n; ++i) {
    const int64_t place = places[static_cast<size_t>(i / inner % count)];
    const int64_t from = (i / inner / count * along + place) * inner + i % inner;
    if (is_float(x.dtype()))
      y.set_real(i, x.real(from));
    else
      set_wrapped(y, i, x.integer(from));
  }
  return {y};
}

}  // namespace opfuse
