// Size: the product of all dimensions.
#include "ops/size.hpp"

namespace opfuse {

std::vector<TensorType> SizeOf::infer(const Attrs&, const Inference&) { return {{DType::i64, Shape{}}}; }

std::vector<Tensor> SizeOf::reference(const Attrs&, Tensors in, Precision) {
  Tensor out(DType::i64, {});
  out.set_integer(0, in[0]->elements());
  return {out};
}

std::optional<std::vector<Dim>> SizeOf::dims(const Attrs&, const Inference& in) {
  if (!in.shape(0).ranked) return std::nullopt;
  return std::vector<Dim>{in.shape(0).elements()};
}

}  // namespace opfuse
