// Reshape: resolves 0 and -1, symbolic dimensions included.
//
// The dimension behind -1 is elements(x) / elements(rest). Equal symbolic dimensions are cancelled first, so that
// [n, 64, h, w] -> [n, 64, -1] gives h*w and not a quotient of products.
#include "ops/reshape.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {
namespace {

Dim product_of(const std::vector<Dim>& dims) {
  Dim p = 1;
  for (const Dim& d : dims) p = p * d;
  return p;
}

Dim remaining(const Shape& x, const std::vector<Dim>& rest) {
  std::vector<Dim> over = x.dims, under;
  for (const Dim& d : rest) {
    auto same = std::find(over.begin(), over.end(), d);
    if (same != over.end() && !(d == Dim(0)))
      over.erase(same);
    else
      under.push_back(d);
  }
  const Dim above = product_of(over), below = product_of(under);
  if (below == Dim(0))
    throw fail(E::bad_dimension, "-1 cannot be resolved: the other dimensions have no elements")
        .hint("give the dimension instead of -1");
  if (above.is_constant() && below.is_constant() && above.value() % below.value() != 0)
    throw fail(E::shape_mismatch, "{} elements of shape {} are not a multiple of {}", x.elements().text(), x.text(),
               product_of(rest).text());
  assume(DimRule::multiple, above, below, "-1 stands for a whole number of elements");
  return floor_div(above, below);
}

}  // namespace

Shape reshaped(const Shape& x, const std::vector<Dim>& target, bool allowzero) {
  if (!x.ranked) return Shape::unknown();
  Shape out{target};
  std::optional<size_t> open;
  for (size_t i = 0; i < out.rank(); ++i) {
    auto value = out[i].constant();
    if (!value) continue;
    if (*value == 0 && !allowzero) {
      if (i >= x.rank())
        throw fail(E::bad_dimension, "shape has 0 (keep) at {}, but the operand has rank {}", i, x.rank());
      out[i] = x[i];
    } else if (*value == -1) {
      if (open) throw fail(E::bad_dimension, "shape {} has more than one -1", out.text());
      open = i;
    } else if (*value < 0) {
      throw fail(E::bad_dimension, "shape {} has the negative dimension {}", out.text(), *value);
    }
  }
  if (open) {
    std::vector<Dim> rest = out.dims;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(*open));
    out[*open] = remaining(x, rest);
  } else if (x.is_static() && out.is_static() && !(x.elements() == out.elements())) {
    throw fail(E::shape_mismatch, "{} has {} elements, {} has {}", x.text(), x.elements().text(), out.text(),
               out.elements().text());
  } else {
    assume(DimRule::equal, x.elements(), out.elements(), "a reshape keeps all elements");
  }
  return out;
}

std::vector<TensorType> Reshape::infer(const Attrs& attrs, const Inference& in) {
  const auto target = in.dims(1);
  if (!target) return unranked(in, in.dtype(0));
  return {{in.dtype(0), reshaped(in.shape(0), *target, attrs.allowzero)}};
}

std::vector<Tensor> Reshape::reference(const Attrs& attrs, Tensors in, Precision) {
  const std::vector<int64_t> target = in[1]->to_i64();
  const Shape shape = reshaped(Shape::of(in[0]->sizes()), {target.begin(), target.end()}, attrs.allowzero);
  return {in[0]->reshaped(shape.sizes())};
}

std::optional<std::vector<Dim>> Reshape::dims(const Attrs&, const Inference& in) { return in.dims(0); }

}  // namespace opfuse
