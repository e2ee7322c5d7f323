// Elements whose places are computed, as a resize's are, often lie within one vector of each other.
#pragma once

#include "cpu/emit/address.hpp"

namespace opfuse::cpu {

/// Elements at `address`, which has lanes: one load and a permutation where they lie within a vector from the first,
/// else one by one. Null: such lanes cannot be permuted.
Value* load_nearby(Kernel& k, const Operand& operand, const Address& address, int width);

}  // namespace opfuse::cpu
