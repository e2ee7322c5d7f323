// Concatenation: for every outer index, one contiguous run of each operand.
#include "ops/concat.hpp"

#include <cstring>

#include "base/fail.hpp"
#include "ops/checks.hpp"

namespace opfuse {

OpSpec Concat::spec() {
  return {.name = "concat",
          .inputs = {{.name = "x", .variadic = true}},
          .outputs = {{"y"}},
          .kind = OpKind::injective,
          .flops_per_element = 0,
          .doc = "Joins tensors along an axis.",
          .moves = Moves::all};
}

std::vector<TensorType> Concat::infer(const Attrs& a, const Inference& in) {
  if (in.inputs() == 0) throw fail(E::arity_mismatch, "concat needs at least one operand");
  for (size_t i = 1; i < in.inputs(); ++i) require_same_dtype(in, 0, i);
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  Shape y = in.shape(0);
  const size_t axis = normalize_axis(a.axis, y.rank());
  for (size_t i = 1; i < in.inputs(); ++i) {
    const Shape& x = in.shape(i);
    in.require_rank(i, y.rank());
    for (size_t d = 0; d < y.rank(); ++d) {
      if (d == axis) {
        y[d] = y[d] + x[d];
      } else {
        if (!may_equal(x[d], y[d]))
          throw fail(E::shape_mismatch, "operand {} has shape {}; axis {} must be {} to be joined along axis {}", i,
                     x.text(), d, y[d].text(), axis);
        y[d] = unify(y[d], x[d], "a joined axis");
      }
    }
  }
  return {{in.dtype(0), y}};
}

std::vector<Tensor> Concat::reference(const Attrs& a, Tensors in, Precision) {
  std::vector<int64_t> sizes = in[0]->sizes();
  const size_t axis = normalize_axis(a.axis, sizes.size());
  sizes[axis] = 0;
  for (const Tensor* t : in) sizes[axis] += t->dim(axis);
  Tensor y(in[0]->dtype(), sizes);
  const int64_t outer = product(sizes, 0, axis);
  const auto row = static_cast<size_t>(product(sizes, axis, sizes.size())) * byte_size(y.dtype());
  size_t offset = 0;
  for (const Tensor* t : in) {
    const size_t run = static_cast<size_t>(product(t->sizes(), axis, sizes.size())) * byte_size(y.dtype());
    for (size_t o = 0; run > 0 && o < static_cast<size_t>(outer); ++o)
      std::memcpy(static_cast<char*>(y.mutable_data()) + o * row + offset,
                  static_cast<const char*>(t->data()) + o * run, run);
    offset += run;
  }
  return {y};
}

std::optional<std::vector<Dim>> Concat::dims(const Attrs&, const Inference& in) {
  std::vector<Dim> joined;
  for (size_t i = 0; i < in.inputs(); ++i) {
    const auto part = in.dims(i);
    if (!part || !in.shape(i).ranked || in.shape(i).rank() != 1) return std::nullopt;
    joined.insert(joined.end(), part->begin(), part->end());
  }
  return joined;
}

}  // namespace opfuse
