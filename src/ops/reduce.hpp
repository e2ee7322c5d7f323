// Reductions over a set of axes: reduce_mean, reduce_sum, ... one struct per law, one body for all.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

enum class ReduceLaw { mean, sum, max, min, prod, l1, l2, log_sum, log_sum_exp, sum_square };

/// Inputs x, axes (optional i64, opset 13/18); `axes` as attribute is the older form. Both absent: all axes, unless
/// noop_with_empty_axes.
struct ReduceAttrs {
  std::vector<int64_t> axes;
  bool keepdims = true;
  bool noop_with_empty_axes = false;
  static void each(auto& s, auto&& field) {
    field("axes", s.axes);
    field("keepdims", s.keepdims);
    field("noop_with_empty_axes", s.noop_with_empty_axes);
  }
};

template <ReduceLaw kKind>
struct Reduce {
  using Attrs = ReduceAttrs;
  static constexpr ReduceLaw kind = kKind;
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static Cost cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out);
  static std::optional<std::vector<Dim>> dims(const Attrs& attrs, const Inference& in);  ///< sum, prod, max, min
};

using ReduceMean = Reduce<ReduceLaw::mean>;
using ReduceSum = Reduce<ReduceLaw::sum>;
using ReduceMax = Reduce<ReduceLaw::max>;
using ReduceMin = Reduce<ReduceLaw::min>;
using ReduceProd = Reduce<ReduceLaw::prod>;
using ReduceL1 = Reduce<ReduceLaw::l1>;
using ReduceL2 = Reduce<ReduceLaw::l2>;
using ReduceLogSum = Reduce<ReduceLaw::log_sum>;
using ReduceLogSumExp = Reduce<ReduceLaw::log_sum_exp>;
using ReduceSumSquare = Reduce<ReduceLaw::sum_square>;

/// Axes to reduce, ascending and non-negative; `axes_operand` (or null) wins over the attribute. Empty: nothing is
/// reduced. E::bad_attribute for out of range or repeated axes.
std::vector<int64_t> reduced_axes(const ReduceAttrs& attrs, const std::vector<int64_t>* axes_operand, size_t rank);

}  // namespace opfuse
