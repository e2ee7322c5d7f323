// Weights that a part widens once for all of its tiles (widen_weights.cpp).
#pragma once

#include "cpu/contraction/decoded_weights.hpp"
#include "cpu/emit/contraction/tile.hpp"

namespace opfuse::cpu {

/// Codes lie in scratch as i16; those with a scale of their own (decode.hpp) as f32.
inline bool widens_weights(const ContractionPlan& plan) {
  return !plan.view.coded && plan.schedule.decode == static_cast<int64_t>(Decode::into_scratch);
}

/// Where a block of weights lies, at any number of the block: in scratch there is one at a time.
Operand widened_weights(const ContractionPlan& plan);

/// Block `block` of the weights goes into scratch.
void widen_block(const ContractionPlan& plan, Value* block);

/// A vector of weights, `at` in scratch, as byte_products.cpp takes it apart.
Factor widened_factor(const ContractionPlan& plan, Value* at);

}  // namespace opfuse::cpu
