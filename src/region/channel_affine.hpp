// BatchNorm in inference as one multiply and one add per channel, and its folding into weights:
//   scale'[c] = scale[c] / sqrt(var[c] + epsilon)         y = x * scale'[c] + shift'[c]
//   shift'[c] = b[c] - mean[c] * scale'[c]
// All of it in double; results are rounded once.
#pragma once

#include "region/lowering.hpp"

namespace opfuse {

struct ChannelAffine {
  Tensor scale, bias, mean, variance;  ///< [C]
  double epsilon = 0;
  double multiplier(int64_t c) const;
  double shift(int64_t c) const;
};

/// The BatchNorm node's constants, or nullopt when one of them is computed at run time.
std::optional<ChannelAffine> constant_affine(const Lowering& lowering, const Node& batch_norm);

/// The BatchNorm that alone reads the node's result and has constant statistics, or null.
const Node* foldable_batch_norm(const Lowering& lowering, const Node& node);

/// weights scaled along `axis` (the output channels).
Tensor folded_weights(const Tensor& weights, int64_t axis, const ChannelAffine& affine);
/// bias * multiplier + shift; `bias` may be empty.
Tensor folded_bias(const Tensor& bias, const ChannelAffine& affine, DType dtype);

}  // namespace opfuse
