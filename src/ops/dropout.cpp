// Inference and reference of dropout: the operand, and a mask of ones when it is asked for.
#include "ops/dropout.hpp"

#include <algorithm>

#include "base/fail.hpp"

namespace opfuse {

std::vector<TensorType> Dropout::infer(const Attrs&, const Inference& in) {
  if (in.has(2)) {
    const Tensor* training = in.constant(2);
    if (!training || training->elements() != 1 || training->integer(0) != 0)
      throw fail(E::unsupported_attribute, "dropout in training mode is not supported")
          .hint("export the model in inference mode (model.eval())");
  }
  std::vector<TensorType> types{in.type(0)};
  if (in.outputs() > 1) types.push_back({DType::boolean, in.shape(0)});
  return types;
}

std::vector<Tensor> Dropout::reference(const Attrs&, Tensors inputs, Precision) {
  Tensor mask(DType::boolean, inputs[0]->sizes());
  auto bytes = mask.mutable_view<uint8_t>();
  std::fill(bytes.begin(), bytes.end(), uint8_t{1});
  return {*inputs[0], mask};
}

}  // namespace opfuse
