// Weights that lie in memory in 16 bits and are widened in registers.
#pragma once

#include "shape/shaping_passes.hpp"

namespace opfuse {

/// Whether narrow-weights will store these weights of the group's product in 16 bits, if a kernel takes them.
bool lies_in_16_bits(const Node& group, const Value& weights, const ShapeContext& context);

}  // namespace opfuse
