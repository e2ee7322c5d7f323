// Squeeze: without axes, every dimension of 1 goes; a symbolic one stays, as it may be anything.
#include "ops/squeeze.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "ops/axes.hpp"
#include "ops/checks.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {
namespace {

Shape squeezed(const Shape& x, const std::vector<int64_t>& axes) {
  if (!x.ranked) return Shape::unknown();
  const std::vector<size_t> gone = normalize_axes(axes, x.rank());
  Shape out;
  for (size_t d = 0; d < x.rank(); ++d) {
    const bool named = std::find(gone.begin(), gone.end(), d) != gone.end();
    if (named && x[d].is_constant() && x[d].value() != 1)
      throw fail(E::shape_mismatch, "dimension {} of {} is not 1 and cannot be squeezed", d, x.text());
    if (named) assume(DimRule::equal, x[d], 1, fmt::format("axis {} is squeezed", d));
    if (axes.empty() && !x[d].is_constant())
      assume(DimRule::differs, x[d], 1, fmt::format("axis {} stays: an axis of 1 would be squeezed", d));
    if (!(named || (axes.empty() && x[d] == Dim(1)))) out.dims.push_back(x[d]);
  }
  return out;
}

}  // namespace

std::vector<TensorType> Squeeze::infer(const Attrs& attrs, const Inference& in) {
  if (in.has(1) && !in.constant(1)) return unranked(in, in.dtype(0));
  return {{in.dtype(0), squeezed(in.shape(0), in.has(1) ? in.integers(1, "axes") : attrs.axes)}};
}

std::vector<Tensor> Squeeze::reference(const Attrs& attrs, Tensors in, Precision) {
  const auto axes = in.size() > 1 && in[1] ? in[1]->to_i64() : attrs.axes;
  return {in[0]->reshaped(squeezed(Shape::of(in[0]->sizes()), axes).sizes())};
}

std::optional<std::vector<Dim>> Squeeze::dims(const Attrs&, const Inference& in) { return in.dims(0); }

}  // namespace opfuse
