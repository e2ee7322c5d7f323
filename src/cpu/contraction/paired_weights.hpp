// How weights in pairs lie (tensor/paired_codes.hpp), by their values.
#pragma once

#include "kernel/views.hpp"
#include "target/target.hpp"
#include "tensor/layout.hpp"

namespace opfuse {

struct PairedWeights {
  Layout layout;
  double extras = 0;  ///< octets that are multiplied twice, of all
};
/// `outputs`, `depth`: the product's channels.
PairedWeights pair_weights(const ContractionView& view, int64_t outputs, int64_t depth, const Tensor& codes,
                           const TargetInfo& target);

}  // namespace opfuse
