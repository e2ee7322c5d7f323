// Takes every step-th element from start to end along some axes. Negative positions count from the end; out of range
// ones are clamped; negative steps walk backwards.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

/// Inputs x and, from opset 10, starts, ends, axes (optional), steps (optional); before, attributes.
struct Slice {
  struct Attrs {
    std::vector<int64_t> axes;
    std::vector<int64_t> ends;
    std::vector<int64_t> starts;
    static void each(auto& s, auto&& field) {
      field("axes", s.axes);
      field("ends", s.ends);
      field("starts", s.starts);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static std::optional<std::vector<Dim>> dims(const Attrs& attrs, const Inference& in);
};

/// A slice of one axis after clamping: `count` elements start, start + step, ...
struct SliceAxis {
  int64_t start = 0, step = 1, count = 0;
};
/// A computed position of an axis of `size` elements: one that no extents make positive counts from the end, for
/// positive steps. Constants stay as they are.
Dim position_from_start(const Dim& at, int64_t step, const Dim& size);
/// Clamps ONNX positions to an axis of `size` elements.
SliceAxis slice_axis(int64_t start, int64_t end, int64_t step, int64_t size);

}  // namespace opfuse
