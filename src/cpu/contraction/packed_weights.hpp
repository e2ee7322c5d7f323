// Products of two activations: what the register-tiled contraction takes for weights is packed by the kernel itself,
// one block of output channels at a time, in the order in which constant weights are packed when compiling.
#pragma once

#include "kernel/spec.hpp"
#include "kernel/views.hpp"

namespace opfuse {

/// The kernel packs them: they are not constants, and the rows that use them are worth it.
bool packs_weights(const Region& region, const ContractionView& view);

/// One block of `block` output channels in scratch: [other reduced axes][channels][block]; all other axes stand still.
ParamLayout packed_weights(const Region& region, const ContractionView& view, int64_t block);

/// Bytes of that.
int64_t packed_bytes(const Stage& stage, const ContractionView& view, int64_t block);

/// Output channels of a block, in vectors.
int64_t packed_vectors(const Stage& stage, const ContractionView& view, int64_t rows, const TargetInfo& target);

}  // namespace opfuse
