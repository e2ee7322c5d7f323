#include "ops/all_images.hpp"

#include "base/fail.hpp"
#include "ops/declare_impl.hpp"

namespace opfuse {

OpSpec AllImages::spec() {
  return {.name = "all_images",
          .inputs = {{"y"}},
          .kind = OpKind::injective,
          .flops_per_element = 0,
          .doc = "A batch whose images are computed one after the other."};
}

std::vector<TensorType> AllImages::infer(const Attrs& a, const Inference& in) {
  TensorType all{in.dtype(0), in.shape(0)};
  all.shape[0] = Dim(a.images);
  return {all};
}

std::vector<Tensor> AllImages::reference(const Attrs&, Tensors, Precision) {
  throw fail(E::internal, "all_images is computed by the loop of a program");
}

const OpInfo* all_images_op() {
  static const OpInfo info = declare<AllImages>();
  return &info;
}

}  // namespace opfuse
