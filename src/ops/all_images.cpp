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
  if (!all.shape.ranked || all.shape.rank() == 0 || all.shape[0] != Dim(1) || a.images < 1)
    throw fail(E::shape_mismatch, "all_images takes one image, [1, ...], to {} of them, not {}", a.images,
               all.shape.text());
  all.shape[0] = Dim(a.images);
  return {all};
}

std::vector<Tensor> AllImages::reference(const Attrs&, Tensors, Precision) {
  throw fail(E::unsupported_op, "all_images is computed by the loop of a program, not by a graph")
      .hint("it is in graphs that `loop-over-images` made: compile the model they come from");
}

const OpInfo* all_images_op() {
  static const OpInfo info = declare<AllImages>();
  return &info;
}

}  // namespace opfuse
