// Numbers with few bits: sums of them are exact in every order.
#pragma once

#include <vector>

#include "ir/graph.hpp"

namespace opfuse::fuzz {

/// Bits that the numbers of a tensor need on one grid (the largest over the finest step); 99 when there is none.
int bits_needed(const Tensor& data);

/// Bits that values of exact graphs may need, with room for sums of them.
int exact_bits(DType dtype);

/// Whether every partial sum and product of a node has room, in every order.
bool sums_stay_exact(const Node& node, const std::vector<const Tensor*>& operands, const SymbolValues& symbols);

}  // namespace opfuse::fuzz
