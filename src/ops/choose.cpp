#include "ops/choose.hpp"

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "ops/defined_size.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {

OpSpec Choose::spec() {
  return {.name = "choose",
          .inputs = {{"condition"}, {"a"}, {"b"}},
          .outputs = {{"y"}},
          .kind = OpKind::shape,
          .flops_per_element = 0,
          .doc = "a where the condition is true, else b: values of different sizes."};
}

std::vector<TensorType> Choose::infer(const Attrs& a, const Inference& in) {
  if (in.dtype(0) != DType::boolean) throw fail(E::dtype_mismatch, "the condition is {}", name_of(in.dtype(0)));
  require_same_dtype(in, 1, 2);
  if (has_unranked(in)) return unranked(in, in.dtype(1));
  if (in.constant(0)) return {in.type(in.constant(0)->integer(0) != 0 ? 1 : 2)};
  Shape y = in.shape(1);
  if (y.rank() != in.shape(2).rank()) throw fail(E::rank_mismatch, "{} or {}", in.type(1).text(), in.type(2).text());
  for (size_t k = 0; k < a.axes.size(); ++k) {
    const std::optional<Dim> size = defined_size(a.defines, k);
    if (!size) return unranked(in, in.dtype(1));
    y[normalize_axis(a.axes[k], y.rank())] = *size;
  }
  for (size_t d = 0; d < y.rank(); ++d)
    if (y[d] == in.shape(1)[d]) assume(DimRule::equal, in.shape(1)[d], in.shape(2)[d], "both branches are as large");
  return {{in.dtype(1), y}};
}

std::vector<Tensor> Choose::reference(const Attrs&, Tensors in, Precision) {
  return {in[0]->integer(0) != 0 ? *in[1] : *in[2]};
}

}  // namespace opfuse
