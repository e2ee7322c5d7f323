// Boxes that stay when those that overlap a better one too much are removed, by class.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

/// Inputs boxes [batch, boxes, 4], scores [batch, classes, boxes], max_output_boxes_per_class, iou_threshold,
/// score_threshold. The result has a row (batch, class, box) per box that stays: how many depends on the data.
struct NonMaxSuppression {
  struct Attrs {
    bool center_point_box = false;     ///< boxes are (x, y, width, height), not two corners (y, x, y, x)
    std::vector<std::string> defines;  ///< how many stay
    static void each(auto& s, auto&& field) {
      field("center_point_box", s.center_point_box), field("defines", s.defines);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

}  // namespace opfuse
