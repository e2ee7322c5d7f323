// The end of groups that run image by image (shape/loop_over_images.cpp):   y[1, ...] -> [images, ...]
// Its operand stands for each image in turn. Only a program's loop computes it (program/image_loop.hpp), so it is in
// graphs that are about to be lowered, in dumps of them and in no list of operators.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct AllImages {
  struct Attrs {
    int64_t images = 1;
    static void each(auto& s, auto&& field) { field("images", s.images); }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  /// Throws: a graph does not run image by image.
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

const OpInfo* all_images_op();

}  // namespace opfuse
